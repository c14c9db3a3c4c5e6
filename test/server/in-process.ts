import { dirname, join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { createApp } from '../../src/server/app.ts';
import { proxiesOf } from '../../src/server/client-address.ts';
import type { App, Services } from '../../src/server/services.ts';
import { createLog } from '../../src/base/log.ts';
import type { Answerer } from '../../src/research/answering.ts';
import { EMBEDDED } from '../../src/research/embedded.ts';
import { createMetrics } from '../../src/server/metrics.ts';
import type { Identity } from '../../src/identity/context.ts';
import { GIVE_ACTION } from '../../src/identity/grants.ts';
import { hashSecret } from '../../src/identity/secrets.ts';
import { addToken, authenticateToken } from '../../src/identity/tokens.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { USUAL_POLICY } from '../identity/policy.ts';
import { newSqliteTables } from '../storage/databases.ts';
import type { Channels } from '../../src/fleet/notifications/channels.ts';
import type { Notifier } from '../../src/fleet/notifications/notifier.ts';
import { chatOf, idleTasks, noProduction, notifierOf } from './idle-tasks.ts';
import { OPEN_GATE } from './open-gate.ts';

/** Public origin of the app under test. */
export const PUBLIC_URL = 'https://licenses.example';

/** The app on a new database, in this process, with a clock that only the test advances. */
export interface TestApp {
  readonly app: App;
  readonly services: Services;
  readonly notifier: Notifier;
  /** Current time of `identity.clock()`, milliseconds since the Unix epoch. */
  now: number;
  /** Log lines, each a JSON object. */
  readonly log: readonly string[];
  /** Creates an administrator with a token; returns its `Authorization` header. */
  readonly bearer: (...scopes: Scope[]) => Promise<string>;
  /** Returns a `Service-Step-Up` token of the token's owner to grant the target more, once. */
  readonly stepUp: (authorization: string, target: string) => Promise<string>;
  /** Sends a request, such as `send('GET', '/healthz')`. */
  readonly send: (method: string, path: string, init?: SendInit) => Promise<Answer>;
  /** Ends streams, as a stopping server does. */
  readonly stop: () => void;
  /** Runs SQL directly on the database. */
  readonly execute: (sql: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface SendInit {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, unless it is text or bytes. */
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed if it is JSON. */
  readonly body: unknown;
}

/**
 * @param change overrides of the identity service.
 * @param answerer answers for research bots.
 * @param channels receive notifications.
 */
export async function newTestApp(
  change: Partial<Identity> = {},
  gate: Services['gate'] = { ...OPEN_GATE },
  answerer: Answerer = EMBEDDED,
  channels: Channels = new Map(),
): Promise<TestApp> {
  const database = await newSqliteTables();
  const storage = await openStorage(database.location);
  const log: string[] = [];
  const stopping = new AbortController();
  const identity: Identity = {
    storage,
    clock: () => test.now,
    policy: USUAL_POLICY,
    signer: new ServiceError('license_lease_unavailable', 'there is no signing key'),
    ...change,
  };
  const lines = createLog((line) => log.push(line), true);
  const chat = chatOf(identity, answerer, lines);
  const notifier = notifierOf(identity, channels, lines);
  const all: Services = {
    identity,
    origins: [PUBLIC_URL],
    isProxy: proxiesOf('auto', PUBLIC_URL),
    gate,
    tasks: idleTasks(identity, join(dirname(database.location.file), 'catalogue')),
    production: noProduction(identity),
    federation: { isEmpty: true, search: async () => [] },
    chat,
    notifier,
    stopping: stopping.signal,
    log: lines,
    metrics: createMetrics(identity),
  };
  const test: TestApp = {
    app: createApp(all),
    services: all,
    notifier,
    now: Date.parse('2026-01-02T03:04:05Z'),
    log,
    bearer: (...scopes) =>
      storage.write(async (tx) => {
        const administrator_id = uuidv7();
        const row = {
          administrator_id,
          name: administrator_id,
          password_hash: 'none',
          totp_secret: 'none',
          totp_last_step: 0,
          created_at: test.now,
          disabled_at: null,
        };
        await tx.insertInto('administrators').values(row).execute();
        const terms = { label: 'test', scopes, expires_in_seconds: 365 * 86_400 };
        const { token } = await addToken(tx, test.now, 'operator', administrator_id, terms);
        return `Bearer ${token}`;
      }),
    stepUp: (authorization, target) =>
      storage.write(async (tx) => {
        const bearer = authorization.replace('Bearer ', '');
        const { administrator_id } = await authenticateToken(tx, test.now, bearer);
        const token = uuidv7();
        const expires_at = test.now + 300_000;
        const grant = { administrator_id, action: GIVE_ACTION, target, expires_at, used_at: null };
        const row = { token_hash: hashSecret(token), ...grant };
        await tx.insertInto('step_ups').values(row).execute();
        return token;
      }),
    async send(method, path, { headers, body } = {}) {
      const isJson =
        body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array);
      const answer = await test.app.request(path, {
        method,
        headers: { ...(isJson && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: (isJson ? JSON.stringify(body) : body) as BodyInit }),
      });
      const text = await answer.text();
      const isAnswerJson = text !== '' && /json/.test(answer.headers.get('content-type') ?? '');
      return {
        status: answer.status,
        headers: answer.headers,
        body: isAnswerJson ? (JSON.parse(text) as unknown) : text,
      };
    },
    stop: () => stopping.abort(),
    execute: database.execute,
    async close() {
      stopping.abort();
      await Promise.all([chat.stop(), notifier.stop()]);
      await storage.close();
      await database.remove();
    },
  };
  return test;
}
