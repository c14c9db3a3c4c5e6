/**
 * Keeps every connection to a server busy, one request after the other, in a process of its own. Reads
 * a `Load` as JSON from its standard input, prints a `Measured`.
 */
import { createPrivateKey, randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeDeviceProof } from '../../src/client/device-proof.ts';

export interface Load {
  readonly url: string;
  readonly path: string;
  /** Who sends the requests, one on each connection. */
  readonly callers: readonly LoadCaller[];
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** An administrator sends the same request over and over; a device renews the lease it got. */
export type LoadCaller =
  | { readonly authorization: string; readonly body: string }
  | { readonly device_id: string; readonly x: string; readonly pem: string };

export interface Measured {
  readonly perSecond: number;
  /** Milliseconds from a request to its answer. */
  readonly p50: number;
  readonly p99: number;
}

const { url, path, callers, warmUpMs, measureMs } = (await json(process.stdin)) as Load;
const { hostname, port, origin } = new URL(url);
const latencies: number[] = [];
let isOver = false;

/** HTTP by hand: a client that knows more of it would cost as much as the server. */
async function run(next: (answer: string) => string): Promise<void> {
  const socket = connect(Number(port), hostname).setEncoding('latin1').setNoDelay();
  let sentAt = performance.now();
  let received = '';
  socket.write(next(''));
  for await (const chunk of socket as AsyncIterable<string>) {
    received += chunk;
    const head = received.indexOf('\r\n\r\n') + 4;
    const length = /^content-length: (\d+)/im.exec(received)?.[1];
    if (head < 4 || length === undefined || received.length < head + Number(length)) continue;
    if (!received.startsWith('HTTP/1.1 201 ')) throw new Error(received);
    latencies.push(performance.now() - sentAt);
    if (isOver) return;
    const following = next(received.slice(head));
    received = '';
    sentAt = performance.now();
    socket.write(following);
  }
  throw new Error(`the server hung up: ${received}`);
}

function request(authorization: string, body: string): string {
  return [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: ${authorization}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}

function requestsOf(caller: LoadCaller): (answer: string) => string {
  if ('body' in caller) {
    const same = request(caller.authorization, caller.body);
    return () => same;
  }
  const key = { ...caller, privateKey: createPrivateKey(caller.pem) };
  return (answer) => {
    const { lease } = answer === '' ? {} : (JSON.parse(answer) as { readonly lease?: unknown });
    const body = JSON.stringify({ renewal_id: randomUUID(), lease });
    const signed = { method: 'POST', url: origin + path, body: Buffer.from(body) };
    return request(`DeviceProof ${makeDeviceProof(key, signed, Date.now())}`, body);
  };
}

const running = Promise.all(callers.map((caller) => run(requestsOf(caller))));
await Promise.race([running, sleep(warmUpMs)]);
latencies.length = 0;
const begin = performance.now();
await Promise.race([running, sleep(measureMs)]);
const seconds = (performance.now() - begin) / 1000;
const sorted = Float64Array.from(latencies).sort();
isOver = true;
await running;
const at = (share: number): number => sorted[Math.floor(sorted.length * share)]!;
const measured: Measured = { perSecond: sorted.length / seconds, p50: at(0.5), p99: at(0.99) };
console.log(JSON.stringify(measured));
