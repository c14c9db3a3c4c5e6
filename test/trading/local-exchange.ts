/** The simulated exchange on a local port, for tests that need sockets or other processes. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Kline } from '../../src/compliance/venue/klines.ts';
import { idOf } from '../../src/compliance/venue/listing.ts';
import type { ExchangeDefinition } from '../../src/trading/venues/exchanges-file.ts';
import { TestExchange, type TestExchangeOptions } from './test-exchange.ts';

/** The time of the machine, or one that stands still. */
class LocalClock {
  fixed: number | undefined;

  get now(): number {
    return this.fixed ?? Date.now();
  }

  wake(time: number, task: () => void): void {
    const ms = time - this.now;
    if (ms > 0) setTimeout(task, ms);
    else task();
  }
}

export async function startExchange(
  options: Omit<TestExchangeOptions, 'clock'>,
): Promise<LocalExchange> {
  const exchange = new LocalExchange(options, new LocalClock());
  await exchange.listenOnPort();
  return exchange;
}

export class LocalExchange extends TestExchange {
  readonly #clock: LocalClock;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  /** Pings that wait for their pongs, by socket of a stream. */
  readonly #sockets = new Map<Duplex, (() => void)[]>();

  constructor(options: Omit<TestExchangeOptions, 'clock'>, clock: LocalClock) {
    super({ ...options, clock });
    this.#clock = clock;
  }

  override get definition(): ExchangeDefinition {
    const { port } = this.#server.address() as AddressInfo;
    const host = `127.0.0.1:${port}`;
    return {
      ccxt: 'binance',
      options: { fetchMarkets: { types: ['spot'] } },
      urls: {
        public: `http://${host}/api/v3`,
        private: `http://${host}/api/v3`,
        ws: { spot: `ws://${host}/stream`, 'ws-api': { spot: `ws://${host}/ws-api/v3` } },
      },
    };
  }

  /** Stops the clock at a time, ms since the epoch. */
  stopClockAt(time: number): void {
    this.#clock.fixed = time;
  }

  async listenOnPort(): Promise<void> {
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      this.#accept(request, socket);
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  /** Stores a bar without streaming it. */
  keep(symbol: string, time: number, kline: Kline): void {
    this.klines.keep(idOf(symbol), time, kline);
  }

  /** Stores and streams a bar; resolves when all clients have read it. */
  stream(symbol: string, time: number, kline: Kline): Promise<void> {
    this.keep(symbol, time, kline);
    this.pushKline(symbol, time);
    return this.#flush();
  }

  /** Sends a text to all clients of streams; resolves when they have read it. */
  say(message: string): Promise<void> {
    for (const socket of this.#sockets.keys()) socket.write(frameOf(message));
    return this.#flush();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #flush(): Promise<void> {
    const read = [...this.#sockets].map(([socket, pings]) => {
      socket.write(Buffer.from([0x89, 0]));
      return new Promise<void>((resolve) => pings.push(resolve));
    });
    await Promise.all(read);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path, inUrl = ''] = request.url!.split('?');
    const apiKey = request.headers['x-mbx-apikey'] as string | undefined;
    const call = `${request.method} ${path!.replace('/api/v3', '')}`;
    const query = request.method === 'POST' ? await text(request) : inUrl;
    this.receive(
      { call, query, apiKey },
      {
        hangUp: () => request.socket.destroy(),
        respond: ({ status, headers, text: body, delayMs, isEndless }) => {
          this.#clock.wake(this.now + delayMs, () => {
            response.writeHead(status, { 'content-type': 'application/json', ...headers });
            if (isEndless) response.write('{');
            else response.end(body);
          });
        },
      },
    );
  }

  #accept(request: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => {});
    // A killed process sends no close frame.
    socket.on('end', () => socket.destroy());
    if (!this.acceptsStream(request.url!.startsWith('/ws-api'))) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n');
      return;
    }
    // RFC 6455 §4.2.2
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    const stream = this.openStream({
      send: (message) => socket.write(frameOf(message)),
      close: () => socket.destroy(),
    });
    const pings: (() => void)[] = [];
    this.#sockets.set(socket, pings);
    socket.on('close', () => {
      this.closeStream(stream);
      this.#sockets.delete(socket);
      for (const resolve of pings) resolve();
    });
    onFrames(socket, (opcode, message) => {
      if (opcode === 1) this.receiveOn(stream, message);
      if (opcode === 10) pings.shift()?.();
    });
  }
}

/** Calls back with each frame of a client, and answers its close frame. */
function onFrames(socket: Duplex, onFrame: (opcode: number, text: string) => void): void {
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
function frameOf(message: string): Buffer {
  const payload = Buffer.from(message);
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
