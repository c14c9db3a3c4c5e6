/** Connects clients of ccxt to a simulated exchange in this process, without a network. */
import { setTimeout as delay } from 'node:timers/promises';
import type { CcxtExchange } from '../../trading/venues/ccxt-types.ts';
import { textOf } from './faults.ts';
import type { SimulatedExchange } from './simulated-exchange.ts';

/** Members of a ccxt exchange that reach the network. */
interface NetworkClient {
  enableRateLimit: boolean;
  milliseconds: () => number;
  sleep: (ms: number) => Promise<void>;
  loadProxyModules: () => Promise<void>;
  fetchImplementation: (url: string, request: FetchRequest) => Promise<object>;
  fetchImplementationLoading: Promise<void>;
  AbortError: unknown;
  FetchError: unknown;
  client: (url: string) => StreamClient;
}

interface FetchRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Members of a WebSocket client of ccxt in use. */
interface StreamClient {
  connection: object | undefined;
  createConnection(): void;
  close(): void;
  onOpen(): void;
  onMessage(event: { readonly data: string }): void;
  onError(error: Error): void;
  onClose(event: { readonly code: number }): void;
  onPong(): void;
}

/** @returns the one-way delay of the next message, ms. */
export type Latency = () => number;

/**
 * Replaces the network below a client: `fetch` and the sockets of its streams. Request signing,
 * parsing and errors remain those of ccxt. The client-side rate limit of ccxt is off, because its
 * timers ignore virtual time; the exchange itself enforces its limits.
 */
export function connectInProcess(
  client: CcxtExchange,
  exchange: SimulatedExchange,
  latency: Latency,
): void {
  const network = client as unknown as NetworkClient;
  network.enableRateLimit = false;
  network.milliseconds = () => Date.now();
  network.sleep = (ms) => delay(ms);
  network.loadProxyModules = async () => {};
  network.AbortError = DOMException;
  network.FetchError = TypeError;
  network.fetchImplementationLoading = Promise.resolve();
  network.fetchImplementation = (url, request) => fetchFrom(exchange, latency, url, request);
  const openClient = network.client.bind(client);
  network.client = (url) => {
    const stream = openClient(url);
    if (!Object.hasOwn(stream, 'createConnection')) useSocket(stream, exchange, latency);
    return stream;
  };
}

function fetchFrom(
  exchange: SimulatedExchange,
  latency: Latency,
  url: string,
  { method, headers, body = '', signal }: FetchRequest,
): Promise<object> {
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')), {
    once: true,
  });
  const { clock } = exchange;
  const after = (ms: number, task: () => void): void => clock.wake(clock.now + ms, task);
  const fail = (isSilent: boolean | undefined): void => {
    if (isSilent === true) return;
    after(latency(), () =>
      reject(Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })),
    );
  };
  const { pathname, search } = new URL(url);
  const request = {
    call: `${method} ${pathname.replace('/api/v3', '')}`,
    query: method === 'POST' ? body : search.slice(1),
    apiKey: headers['X-MBX-APIKEY'],
  };
  after(latency(), () => {
    if (!exchange.isNetworkUp) return fail(false);
    const action = exchange.faultOf(request)?.action;
    if (action?.kind === 'lost_before') return fail(action.isSilent);
    const respond = (status: number, responseHeaders: object, text: string, ms = 0): void => {
      const never = new Promise<never>(() => {});
      const read = action?.kind === 'half' ? () => never : async () => text;
      const response = { status, statusText: '', headers: responseHeaders, text: read };
      after(latency() + ms, () => (exchange.isNetworkUp ? resolve(response) : fail(false)));
    };
    if (action?.kind === 'status' && action.done !== true) {
      return respond(action.status, action.headers ?? {}, JSON.stringify(action.body ?? {}));
    }
    const lateMs = action?.kind === 'lost_after' ? (action.lateMs ?? 0) : 0;
    after(lateMs, () =>
      exchange.receive(request, (answer) => {
        if (action?.kind === 'lost_after') return fail(action.isSilent);
        if (action?.kind === 'status') {
          return respond(action.status, action.headers ?? {}, JSON.stringify(action.body ?? {}));
        }
        const ms = action?.kind === 'slow' ? action.ms : 0;
        respond(answer.status, answer.headers ?? {}, textOf(answer.body, action), ms);
      }),
    );
  });
  return promise;
}

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 3;

/** Gives a WebSocket client of ccxt a socket to the exchange when it connects. */
function useSocket(client: StreamClient, exchange: SimulatedExchange, latency: Latency): void {
  const { clock } = exchange;
  const after = (ms: number, task: () => void): void => clock.wake(clock.now + ms, task);
  let close = (): void => {};
  client.createConnection = () => {
    const socket = {
      readyState: CONNECTING,
      send,
      ping,
      close: () => end(),
      terminate: () => end(),
    };
    let stream: ReturnType<SimulatedExchange['openStream']> | undefined;
    /** Earliest arrival of the next message: messages without a fault keep their order. */
    let arrival = 0;
    const end = (): void => {
      if (socket.readyState === CLOSED) return;
      socket.readyState = CLOSED;
      if (stream !== undefined) exchange.closeStream(stream);
      client.onClose({ code: 1006 });
    };
    const receive = (text: string, delayMs: number): void => {
      const due = Math.max(clock.now + latency(), arrival);
      if (delayMs === 0) arrival = due;
      clock.wake(due + delayMs, () => {
        if (socket.readyState === OPEN) client.onMessage({ data: text });
      });
    };
    function send(text: string, _options: object, done: (error?: Error) => void): void {
      after(latency(), () => {
        if (socket.readyState === OPEN && exchange.isNetworkUp) exchange.receiveOn(stream!, text);
      });
      done();
    }
    function ping(): void {
      after(2 * latency(), () => {
        if (socket.readyState === OPEN && exchange.isNetworkUp) client.onPong();
      });
    }
    close = end;
    client.connection = socket;
    after(latency(), () => {
      if (!exchange.isNetworkUp) {
        socket.readyState = CLOSED;
        client.onError(new Error('connect ECONNREFUSED'));
        client.onClose({ code: 1006 });
        return;
      }
      if (socket.readyState === CLOSED) return;
      socket.readyState = OPEN;
      stream = exchange.openStream({ send: receive, close: () => after(latency(), end) });
      client.onOpen();
    });
  };
  client.close = () => close();
}
