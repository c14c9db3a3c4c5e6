/** Local servers that take the part of receivers of notifications. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { blocksOf } from '../../docs/documents.ts';

/** A signing secret in the form of Standard Webhooks. */
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
export const SMTP_PASSWORD = 'the-password-of-the-relay';
export const TELEGRAM_TOKEN = '123456:the-token-of-the-bot';

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface HttpReceiver {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
  /** Resolves when it has received this many requests. */
  readonly received: (count: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** @param answers responds to a request; by default with 204. */
export async function receiveHttp(
  answers: (response: Parameters<RequestListener>[1], count: number) => void = (response) =>
    void response.writeHead(204).end(),
): Promise<HttpReceiver> {
  const requests: ReceivedRequest[] = [];
  let onRequest = (): void => {};
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      requests.push({ path: request.url!, headers: request.headers, body });
      onRequest();
      answers(response, requests.length);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async received(count) {
      while (requests.length < count) {
        await new Promise<void>((resolve) => {
          onRequest = resolve;
        });
      }
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const guide = blocksOf('docs/how-to/notifications.md').find(({ language }) => language === 'js');
const { isSigned: verify } = (await import(
  /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(guide!.lines.join('\n'))}`
)) as {
  readonly isSigned: (
    headers: IncomingHttpHeaders,
    body: string,
    secret: string,
    now?: number,
  ) => boolean;
};

/** Verifies a request with the code in the guide. */
export function isSigned(
  { headers, body }: ReceivedRequest,
  secret: string,
  now?: number,
): boolean {
  return verify(headers, body, secret, now);
}

export interface MailReceiver {
  readonly port: number;
  readonly messages: readonly string[];
  /** Resolves when a client has disconnected. */
  readonly disconnected: Promise<void>;
  readonly close: () => Promise<void>;
}

/**
 * A mail server without TLS that requires the user `alerts` and `SMTP_PASSWORD`.
 * @param acceptSender calls its argument to accept the sender of a message.
 */
export async function receiveMail(
  acceptSender: (accept: () => void) => void = (accept) => accept(),
): Promise<MailReceiver> {
  const messages: string[] = [];
  const { promise: disconnected, resolve: onClose } = Promise.withResolvers<void>();
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    allowInsecureAuth: true,
    onAuth({ username, password }, _session, done) {
      if (username === 'alerts' && password === SMTP_PASSWORD) done(null, { user: username });
      else done(new Error(`the password ${password} is wrong`));
    },
    onMailFrom: (_address, _session, done) => acceptSender(() => done()),
    onClose: () => onClose(),
    onData(stream, _session, done) {
      let message = '';
      stream.setEncoding('utf8').on('data', (part: string) => (message += part));
      stream.on('end', () => {
        messages.push(message);
        done();
      });
    },
  });
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    messages,
    disconnected,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
