/** One line of what the exchange received, sent and did, in sequence. */
export interface ExchangeLine {
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly kind: 'request' | 'response' | 'pushed' | 'trade' | 'command' | 'fault';
  /** Name of the account of a request or a pushed message. */
  readonly account?: string;
  /** Call of a request or response. */
  readonly call?: string;
  readonly message: object;
}
