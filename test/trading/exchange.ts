/**
 * Local exchange with the part of the Binance API that ccxt needs for bars: `exchangeInfo`, `time`
 * and `klines` over REST, and streams of klines. Its clock advances only when a test sets it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ExchangeDefinition } from '../../src/trading/venues/exchanges-file.ts';

/** Open, high, low, close and volume as decimal text; anything else simulates malformed data. */
export type Kline = readonly [
  open: string,
  high: string,
  low: string,
  close: string,
  volume: string,
];

export interface TestExchange {
  readonly definition: ExchangeDefinition;
  /** Paths of REST requests with their queries. */
  readonly asked: readonly string[];
  now: number;
  /** Symbols whose trading is halted. */
  readonly halted: Set<string>;
  /** Delisted symbols. */
  readonly deleted: Set<string>;
  /** Stores a bar for REST without streaming it. */
  readonly keep: (symbol: string, time: number, kline: Kline) => void;
  /** Stores and streams a bar; resolves when all clients have read it. */
  readonly stream: (
    symbol: string,
    time: number,
    kline: Kline,
    isClosed?: boolean,
  ) => Promise<void>;
  /** Sends a text to all clients of streams. */
  readonly say: (text: string) => Promise<void>;
  /** Resolves once the symbol was subscribed this many times in total. */
  readonly subscribed: (symbol: string, count: number) => Promise<void>;
  /** Terminates all streams without a close frame. */
  readonly cut: () => void;
  /** Whether it accepts new streams. */
  takesStreams: boolean;
  /** Answers the next requests with this status and these headers. */
  readonly refuse: (count: number, status: number, headers?: Record<string, string>) => void;
  readonly close: () => Promise<void>;
}

const TIMEFRAME_MS = 60_000;

/** @param symbols for example `BTC/USDT`. */
export async function startExchange(
  symbols: readonly string[],
  now: number,
): Promise<TestExchange> {
  const idOf = (symbol: string): string => symbol.replace('/', '');
  const bars = new Map<string, Map<number, Kline>>(symbols.map((one) => [idOf(one), new Map()]));
  const asked: string[] = [];
  const subscriptions = new Map<string, number>();
  const streams = new Map<Duplex, Set<string>>();
  /** Pending pings of each stream. */
  const pings = new Map<Duplex, (() => void)[]>();
  let waiting: (() => void)[] = [];
  let refusals: { status: number; headers: Record<string, string> }[] = [];

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request.url!);
    const url = new URL(request.url!, 'http://localhost');
    const refusal = refusals.shift();
    if (refusal !== undefined) {
      response.writeHead(refusal.status, refusal.headers).end('{"code":-1003,"msg":"Too much."}');
      return;
    }
    const body = answerTo(url);
    response
      .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? { code: -1121, msg: 'Invalid symbol.' }));
  };
  const answerTo = ({ pathname, searchParams }: URL): unknown => {
    if (pathname === '/api/v3/time') return { serverTime: exchange.now };
    if (pathname === '/api/v3/exchangeInfo') {
      const wanted = JSON.parse(searchParams.get('symbols') ?? '[]') as string[];
      // Like Binance, it fails for all symbols if one is unknown.
      if ([...exchange.deleted].some((one) => wanted.includes(idOf(one)))) return undefined;
      return {
        timezone: 'UTC',
        serverTime: exchange.now,
        symbols: symbols
          .filter((one) => !exchange.deleted.has(one))
          .map((one) => marketOf(one, exchange.halted.has(one))),
      };
    }
    if (pathname !== '/api/v3/klines') return undefined;
    const since = Number(searchParams.get('startTime') ?? 0);
    return [...(bars.get(searchParams.get('symbol')!) ?? [])]
      .filter(([time]) => time >= since)
      .sort(([a], [b]) => a - b)
      .slice(0, Number(searchParams.get('limit')))
      .map(([time, kline]) => [time, ...kline, time + TIMEFRAME_MS - 1, '0', 1, '0', '0', '0']);
  };

  const subscribe = (socket: Duplex, text: string): void => {
    const { id, params } = JSON.parse(text) as { id: number; params: readonly string[] };
    for (const stream of params) {
      streams.get(socket)!.add(stream);
      subscriptions.set(stream, (subscriptions.get(stream) ?? 0) + 1);
    }
    socket.write(frameOf(JSON.stringify({ result: null, id })));
    for (const check of waiting) check();
  };

  const server = createServer(answer);
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    socket.on('error', () => {});
    // A killed process sends no close frame.
    socket.on('end', () => socket.destroy());
    if (!exchange.takesStreams) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n');
      return;
    }
    acceptStream(request, socket);
    streams.set(socket, new Set());
    pings.set(socket, []);
    socket.on('close', () => {
      streams.delete(socket);
      for (const resolve of pings.get(socket)!) resolve();
    });
    onFrames(socket, (opcode, text) => {
      if (opcode === 1) subscribe(socket, text);
      if (opcode === 10) pings.get(socket)!.shift()?.();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const streamOf = (symbol: string): string => `${idOf(symbol).toLowerCase()}@kline_1m`;
  const send = async (text: string, stream?: string): Promise<void> => {
    const to = [...streams].filter(([, streamed]) => stream === undefined || streamed.has(stream));
    const read = to.map(async ([socket]) => {
      socket.write(Buffer.concat([frameOf(text), Buffer.from([0x89, 0])]));
      await new Promise<void>((resolve) => pings.get(socket)!.push(resolve));
    });
    await Promise.all(read);
  };
  const exchange: TestExchange = {
    definition: {
      ccxt: 'binance',
      options: { fetchMarkets: { types: ['spot'] } },
      urls: {
        public: `http://127.0.0.1:${port}/api/v3`,
        ws: { spot: `ws://127.0.0.1:${port}/stream` },
      },
    },
    asked,
    now,
    halted: new Set(),
    deleted: new Set(),
    takesStreams: true,
    keep: (symbol, time, kline) => void bars.get(idOf(symbol))!.set(time, kline),
    stream(symbol, time, kline, isClosed = false) {
      bars.get(idOf(symbol))!.set(time, kline);
      const [o, h, l, c, v] = kline;
      const s = idOf(symbol);
      const k = { t: time, T: time + TIMEFRAME_MS - 1, s, i: '1m', o, c, h, l, v, x: isClosed };
      return send(JSON.stringify({ e: 'kline', E: exchange.now, s, k }), streamOf(symbol));
    },
    say: (text) => send(text),
    subscribed: (symbol, count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if ((subscriptions.get(streamOf(symbol)) ?? 0) < count) return;
          waiting = waiting.filter((other) => other !== check);
          resolve();
        };
        waiting.push(check);
        check();
      }),
    cut() {
      for (const socket of streams.keys()) socket.destroy();
    },
    refuse(count, status, headers = {}) {
      refusals = Array.from({ length: count }, () => ({ status, headers }));
    },
    async close() {
      exchange.cut();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return exchange;
}

function marketOf(symbol: string, isHalted: boolean): object {
  const [baseAsset, quoteAsset] = symbol.split('/');
  return {
    symbol: `${baseAsset}${quoteAsset}`,
    status: isHalted ? 'BREAK' : 'TRADING',
    baseAsset,
    baseAssetPrecision: 8,
    quoteAsset,
    quotePrecision: 8,
    orderTypes: ['LIMIT', 'LIMIT_MAKER', 'MARKET', 'STOP_LOSS', 'STOP_LOSS_LIMIT'],
    isSpotTradingAllowed: true,
    filters: [
      { filterType: 'PRICE_FILTER', minPrice: '0.01', maxPrice: '1000000', tickSize: '0.01' },
      { filterType: 'LOT_SIZE', minQty: '0.0001', maxQty: '9000', stepSize: '0.0001' },
      { filterType: 'NOTIONAL', minNotional: '5', applyMinToMarket: true, avgPriceMins: 5 },
    ],
    permissions: ['SPOT'],
  };
}

/** Accepts a WebSocket upgrade (RFC 6455 §4.2.2). */
export function acceptStream(request: IncomingMessage, socket: Duplex): void {
  const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash('sha1').update(key).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
}

/** Calls back with each frame of a client, and answers its close frame. */
export function onFrames(socket: Duplex, onFrame: (opcode: number, text: string) => void): void {
  let rest = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => {
    rest = Buffer.concat([rest, data]);
    for (let frame = readFrame(rest); frame !== undefined; frame = readFrame(rest)) {
      rest = rest.subarray(frame.length);
      onFrame(frame.opcode, frame.text);
      if (frame.opcode === 8) socket.end(Buffer.from([0x88, 0]));
    }
  });
}

/** Encodes a text as one frame of a server (RFC 6455 §5.2). */
export function frameOf(text: string): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  const head =
    length < 126
      ? Buffer.from([0x81, length])
      : Buffer.from([0x81, 126, length >> 8, length & 255]);
  return Buffer.concat([head, payload]);
}

/** Decodes the first frame of a client, which is masked. */
function readFrame(data: Buffer): { opcode: number; text: string; length: number } | undefined {
  if (data.length < 6) return undefined;
  const short = data[1]! & 127;
  const start = short === 126 ? 4 : 2;
  if (data.length < start + 4) return undefined;
  const size = short === 126 ? data.readUInt16BE(2) : short;
  const length = start + 4 + size;
  if (data.length < length) return undefined;
  const mask = data.subarray(start, start + 4);
  const payload = Buffer.from(data.subarray(start + 4, length));
  for (let at = 0; at < size; at += 1) payload[at] = payload[at]! ^ mask[at % 4]!;
  return { opcode: data[0]! & 15, text: payload.toString(), length };
}
