/** Connects clients of ccxt to a simulated exchange in this process, without a network. */
import { setTimeout as delay } from 'node:timers/promises';
import { requireCcxt } from '../../trading/venues/ccxt-client.ts';
import type { CcxtExchange } from '../../trading/venues/ccxt-types.ts';
import { patchedBy, textOf, type FaultAction } from './faults.ts';
import type { SimulatedExchange, Stream } from './simulated-exchange.ts';

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
  readonly url: string;
  connection: object | undefined;
  createConnection(): void;
  close(): void;
  onOpen(): void;
  onMessage(event: { readonly data: string }): void;
  onError(error: Error): void;
  onClose(event: { readonly code: number }): void;
  onPong(): void;
}

export interface Connection {
  /** Breaks it like the death of the client's process: no message arrives any longer. */
  kill(): void;
}

/**
 * Replaces the network below a client: `fetch` and the sockets of its streams. ccxt still signs
 * requests, parses responses and classifies errors. The client-side rate limit of ccxt is off, because its
 * timers ignore virtual time; the exchange itself enforces its limits.
 *
 * @param latency returns the one-way delay of the next message, ms.
 */
export function connectInProcess(
  client: CcxtExchange,
  exchange: SimulatedExchange,
  latency: () => number,
): Connection {
  const network = client as unknown as NetworkClient;
  const connection = new InProcessConnection(exchange, latency);
  network.enableRateLimit = false;
  network.milliseconds = () => Date.now();
  network.sleep = (ms) => delay(ms);
  network.loadProxyModules = async () => {};
  network.AbortError = DOMException;
  network.FetchError = TypeError;
  network.fetchImplementationLoading = Promise.resolve();
  network.fetchImplementation = (url, request) => connection.fetch(url, request);
  const openStream = network.client.bind(client);
  network.client = (url) => {
    const stream = openStream(url);
    if (!Object.hasOwn(stream, 'createConnection')) connection.attach(stream);
    return stream;
  };
  return connection;
}

const CONNECTING = 0;
const OPEN = 1;
const CLOSED = 3;

class InProcessConnection implements Connection {
  readonly #exchange: SimulatedExchange;
  readonly #latency: () => number;
  readonly #streams = new Set<Stream>();
  #isKilled = false;

  constructor(exchange: SimulatedExchange, latency: () => number) {
    this.#exchange = exchange;
    this.#latency = latency;
  }

  kill(): void {
    this.#isKilled = true;
    for (const stream of this.#streams) this.#exchange.closeStream(stream);
  }

  fetch(url: string, { method, headers, body = '', signal }: FetchRequest): Promise<object> {
    const { promise, resolve, reject } = Promise.withResolvers<object>();
    if (this.#isKilled) return promise;
    const abort = (): void => reject(new DOMException('aborted', 'AbortError'));
    signal.addEventListener('abort', abort, { once: true });
    const { pathname, search } = new URL(url);
    const request = {
      call: `${method} ${pathname.replace('/api/v3', '')}`,
      query: method === 'POST' ? body : search.slice(1),
      apiKey: headers['X-MBX-APIKEY'],
    };
    const isUp = (): boolean => this.#exchange.isReachable(request.apiKey !== undefined);
    const hangUp = (): void =>
      this.#deliver(0, () => reject(Object.assign(new Error('hung up'), { code: 'ECONNRESET' })));
    const respond = (status: number, replyHeaders: object, text: string, action?: FaultAction) => {
      const isHalf = action?.kind === 'half';
      const read = () => (isHalf ? new Promise<never>(() => {}) : Promise.resolve(text));
      const response = { status, statusText: '', headers: replyHeaders, text: read };
      this.#deliver(action?.kind === 'slow' ? action.ms : 0, () =>
        isUp() ? resolve(response) : hangUp(),
      );
    };
    this.#after(this.#latency(), () => {
      if (!isUp()) return hangUp();
      const action = this.#exchange.faultOf(request)?.action;
      if (action?.kind === 'lost_before') return action.isSilent === true ? undefined : hangUp();
      const fail = (): void => {
        const { status, headers: own = {}, body: error = {} } = action as StatusFault;
        respond(status, own, JSON.stringify(error));
      };
      if (action?.kind === 'status' && action.done !== true) return fail();
      const arrive = (): void =>
        this.#exchange.receive(request, (reply) => {
          if (action?.kind === 'status') return fail();
          if (action?.kind === 'lost_after') return action.isSilent === true ? undefined : hangUp();
          const text = textOf(patchedBy(action, reply.body as object), action);
          respond(reply.status, reply.headers ?? {}, text, action);
        });
      if (action?.kind === 'lost_after' && action.lateMs) this.#after(action.lateMs, arrive);
      else arrive();
    });
    return promise;
  }

  /** Gives a WebSocket client of ccxt a socket to the exchange whenever it connects. */
  attach(client: StreamClient): void {
    let close = (): void => {};
    client.createConnection = () => {
      if (!this.#isKilled) close = this.#connect(client);
    };
    client.close = () => close();
  }

  /** @returns a function that closes the socket. */
  #connect(client: StreamClient): () => void {
    const exchange = this.#exchange;
    let stream: Stream | undefined;
    /** Arrival of the last message: messages without a fault keep their order. */
    let arrival = 0;
    const close = (): void => {
      if (socket.readyState === CLOSED) return;
      socket.readyState = CLOSED;
      if (stream !== undefined) {
        this.#streams.delete(stream);
        exchange.closeStream(stream);
      }
      client.onClose({ code: 1006 });
    };
    const isUp = (): boolean => exchange.isReachable(client.url.includes('ws-api'));
    const isOpen = (): boolean => socket.readyState === OPEN && isUp();
    const socket = {
      readyState: CONNECTING,
      close,
      terminate: close,
      send: (text: string, _options: object, done: () => void): void => {
        this.#after(this.#latency(), () => isOpen() && exchange.receiveOn(stream!, text));
        done();
      },
      ping: () => this.#deliver(this.#latency(), () => isOpen() && client.onPong()),
    };
    const receive = (text: string, delayMs: number): void => {
      const due = Math.max(exchange.now + this.#latency(), arrival);
      if (delayMs === 0) arrival = due;
      this.#after(due + delayMs - exchange.now, () => {
        if (socket.readyState === OPEN && !this.#isKilled) client.onMessage({ data: text });
      });
    };
    client.connection = socket;
    this.#deliver(0, () => {
      if (socket.readyState === CLOSED) return;
      if (!isUp()) {
        socket.readyState = CLOSED;
        client.onError(new Error('connect ECONNREFUSED'));
        client.onClose({ code: 1006 });
        return;
      }
      socket.readyState = OPEN;
      stream = exchange.openStream({ send: receive, close: () => this.#deliver(0, close) });
      this.#streams.add(stream);
      client.onOpen();
    });
    return close;
  }

  #after(ms: number, task: () => void): void {
    const { clock } = this.#exchange;
    clock.wake(clock.now + ms, task);
  }

  /** Runs a task of the client after a delay beyond the latency, unless its process has died. */
  #deliver(ms: number, task: () => void): void {
    this.#after(this.#latency() + ms, () => {
      if (!this.#isKilled) task();
    });
  }
}

type StatusFault = Extract<FaultAction, { readonly kind: 'status' }>;

/** Endpoints that ccxt uses at the simulated exchange, by access and method. */
const ENDPOINTS = {
  public: { get: ['time', 'exchangeInfo', 'klines'] },
  private: {
    get: ['order', 'openOrders', 'account', 'myTrades'],
    post: ['order'],
    delete: ['order'],
  },
} as const;

type Endpoints = Readonly<Record<string, Readonly<Record<string, object | number>>>>;
type Description = Readonly<Record<string, unknown>> & {
  readonly api: Readonly<Record<string, Endpoints>>;
};
type ClientClass = new (config: object) => CcxtExchange & { describe(): Description };

/**
 * Makes ccxt construct Binance clients with the endpoints of the simulated exchange only: most of
 * the time of constructing one goes to thousands of others.
 *
 * @returns a function that undoes it.
 */
export function limitEndpoints(): () => void {
  const pro = requireCcxt().pro as Record<string, ClientClass>;
  const Full = pro['binance']!;
  let description: Description | undefined;
  pro['binance'] = class extends Full {
    override describe(): Description {
      description ??= withFewEndpoints(super.describe());
      return description;
    }
  };
  return () => {
    pro['binance'] = Full;
  };
}

function withFewEndpoints(description: Description): Description {
  const accesses = Object.entries(ENDPOINTS).map(([access, methods]) => {
    const all = description.api[access]!;
    const kept = Object.entries<readonly string[]>(methods).map(([method, paths]) => [
      method,
      Object.fromEntries(paths.map((path) => [path, all[method]![path]!])),
    ]);
    return [access, Object.fromEntries(kept)];
  });
  return { ...description, api: Object.fromEntries(accesses) };
}
