/**
 * Keeps every connection to a server busy, one request after the other, in a process of its own. Reads
 * a `Load` as JSON from its standard input, prints the milliseconds per answered request.
 */
import { connect } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Load {
  readonly url: string;
  readonly path: string;
  /** One for each connection. */
  readonly requests: readonly LoadRequest[];
  readonly warmUpMs: number;
  readonly measureMs: number;
}

export interface LoadRequest {
  readonly authorization: string;
  readonly body: string;
}

const { url, path, requests, warmUpMs, measureMs } = (await json(process.stdin)) as Load;
const { hostname, port } = new URL(url);
let answers = 0;
let isOver = false;

/** Writes HTTP itself, because a complete client would take as much time as the server. */
async function repeat({ authorization, body }: LoadRequest): Promise<void> {
  const request = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: ${authorization}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
  const socket = connect(Number(port), hostname).setEncoding('latin1').setNoDelay();
  let received = '';
  socket.write(request);
  for await (const chunk of socket as AsyncIterable<string>) {
    received += chunk;
    const head = received.indexOf('\r\n\r\n') + 4;
    const length = /^content-length: (\d+)/im.exec(received)?.[1];
    if (head < 4 || length === undefined || received.length < head + Number(length)) continue;
    if (!received.startsWith('HTTP/1.1 201 ')) throw new Error(received);
    answers += 1;
    if (isOver) return;
    received = '';
    socket.write(request);
  }
  throw new Error(`the server closed the connection: ${received}`);
}

const running = Promise.all(requests.map(repeat));
await Promise.race([running, sleep(warmUpMs)]);
answers = 0;
const begin = performance.now();
await Promise.race([running, sleep(measureMs)]);
const msPerRequest = (performance.now() - begin) / answers;
isOver = true;
await running;
console.log(msPerRequest);
