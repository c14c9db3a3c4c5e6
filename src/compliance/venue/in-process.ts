/** Connects clients of ccxt to a simulated exchange in this process, without a network. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { requireCcxt } from '../../trading/venues/ccxt-client.ts';
import type { CcxtExchange } from '../../trading/venues/ccxt-types.ts';
import type { ApiRequest } from './binance-api.ts';
import type { Reply, SimulatedExchange, Stream } from './simulated-exchange.ts';

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

/** Loss and observation of messages between a client and the exchange. */
export interface Network {
  /** Whether a message is lost, without an error. */
  loses?(message: 'request' | 'response' | 'pushed'): boolean;
  /** Observes a request as it leaves the client, and as it arrives. */
  observe?(request: ApiRequest, moment: 'sent' | 'arrived'): void;
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
  between: Network = {},
): Connection {
  const network = client as unknown as NetworkClient;
  const connection = new InProcessConnection(exchange, latency, between);
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
  readonly #network: Network;
  readonly #streams = new Set<Stream>();
  /** Runs a task in the asynchronous context of the client. */
  readonly #inClient = AsyncLocalStorage.snapshot();
  #isKilled = false;

  constructor(exchange: SimulatedExchange, latency: () => number, network: Network) {
    this.#exchange = exchange;
    this.#latency = latency;
    this.#network = network;
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
    const respond = ({ isEndless, delayMs, ...reply }: Reply): void => {
      const text = () => (isEndless ? new Promise<never>(() => {}) : Promise.resolve(reply.text));
      if (this.#loses('response')) return;
      this.#deliver(delayMs, () =>
        isUp() ? resolve({ ...reply, statusText: '', text }) : hangUp(),
      );
    };
    this.#network.observe?.(request, 'sent');
    if (this.#loses('request')) return promise;
    this.#after(this.#latency(), () => {
      this.#network.observe?.(request, 'arrived');
      this.#exchange.receive(request, { hangUp, respond });
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
    const isPrivate = client.url.includes('ws-api');
    const isUp = (): boolean => exchange.isReachable(isPrivate) && !this.#loses('pushed');
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
      if (this.#loses('pushed')) return;
      const due = Math.max(exchange.now + this.#latency(), arrival);
      if (delayMs === 0) arrival = due;
      this.#after(due + delayMs - exchange.now, () => {
        if (socket.readyState !== OPEN || this.#isKilled) return;
        this.#inClient(() => client.onMessage({ data: text }));
      });
    };
    client.connection = socket;
    this.#deliver(0, () => {
      if (socket.readyState === CLOSED) return;
      if (this.#loses('pushed') || !exchange.acceptsStream(isPrivate)) {
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

  #loses(message: 'request' | 'response' | 'pushed'): boolean {
    return this.#network.loses?.(message) === true;
  }

  #after(ms: number, task: () => void): void {
    const { clock } = this.#exchange;
    clock.wake(clock.now + ms, task);
  }

  /** Runs a task of the client after a delay beyond the latency, unless its process has died. */
  #deliver(ms: number, task: () => void): void {
    this.#after(this.#latency() + ms, () => {
      if (!this.#isKilled) this.#inClient(task);
    });
  }
}

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

/** ccxt's client of Binance, which takes a tenth of the time to construct. */
let lean: ClientClass | undefined;

/**
 * Makes ccxt construct Binance clients with the endpoints of the simulated exchange only, and
 * without the aliases of methods in snake case: most of the time goes to thousands of them.
 *
 * @returns a function that undoes it.
 */
export function limitEndpoints(): () => void {
  const pro = requireCcxt().pro as Record<string, ClientClass>;
  const Full = pro['binance']!;
  // One class for all clients, because V8 optimizes construction for each class.
  lean ??= leanClassOf(Full);
  pro['binance'] = lean;
  return () => {
    pro['binance'] = Full;
  };
}

function leanClassOf(Full: ClientClass): ClientClass {
  let description: Description | undefined;
  return class extends Full {
    constructor(config: object) {
      const { getOwnPropertyNames } = Object;
      // ccxt makes an alias of each name that it finds.
      Object.getOwnPropertyNames = () => [];
      try {
        super(config);
      } finally {
        Object.getOwnPropertyNames = getOwnPropertyNames;
      }
    }

    override describe(): Description {
      description ??= withFewEndpoints(super.describe());
      return description;
    }
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
