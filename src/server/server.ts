import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { hasAdministrators } from '../identity/administrators.ts';
import type { Identity, IdentityStore, LeasePolicy } from '../identity/context.ts';
import type { LicenseGate } from '../gate/gate.ts';
import { activeKey, registerSigner, usableSigner } from '../identity/signing-keys.ts';
import { countersign, publishedEndorsement } from '../identity/endorsement.ts';
import { loadSigner, type Signer } from '../identity/signing-key.ts';
import { expiryWarnings, issuerFault, publishedTrust } from '../identity/published-trust.ts';
import { federationOf } from '../research/knowledge/federation.ts';
import { readKnowledgeFile } from '../research/knowledge/knowledge-file.ts';
import { openChat } from '../research/chat.ts';
import { answererOf } from '../research/providers.ts';
import { startTelemetry } from '../base/telemetry.ts';
import type { EndTelemetry } from '../base/telemetry-options.ts';
import type { Settings } from '../base/settings.ts';
import { openConfiguredStorage, describeStorage } from '../storage/storage-location.ts';
import type { Storage } from '../storage/storage.ts';
import { startAgentRunner } from './agents.ts';
import { createApp } from './app.ts';
import { proxiesOf } from './client-address.ts';
import { watchDatabase } from './database-watch.ts';
import { readChannelsFile } from '../fleet/notifications/channels-file.ts';
import { openChannels } from '../fleet/notifications/channels.ts';
import { Notifier } from '../fleet/notifications/notifier.ts';
import type { Log } from '../base/log.ts';
import { openOwnGate } from './license.ts';
import { createMetrics } from './metrics.ts';
import { startRetention } from './retention.ts';
import type { App } from './services.ts';
import { startOwnWork } from './work.ts';

export interface RunningServer {
  readonly url: string;
  /**
   * Rejects new connections, completes open requests, releases its tasks, and closes the database.
   * Connections that are still open after `STOP_WITHIN_MS` are closed.
   */
  readonly stop: () => Promise<void>;
}

const STOP_WITHIN_MS = 10_000;

/** Limits for slow and idle clients; proxies keep idle connections for a minute. */
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
};

const WARN_EVERY_MS = 24 * 3_600_000;

/**
 * Starts the server with the given settings and environment.
 *
 * @throws ServiceError `invalid_setting`, `storage_unavailable`, or `conflict` if the port is in use.
 */
export async function startServer(
  settings: Settings,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<RunningServer> {
  const policy = leasePolicy(settings);
  const answerer = answererOf(settings, env);
  const storage = await openConfiguredStorage(settings.home, env, (error) =>
    log.warn({ err: error, msg: 'a database connection failed' }),
  );
  let server: Server | undefined;
  let gate: LicenseGate | undefined;
  let endWatch: (() => Promise<void>) | undefined;
  let endTelemetry: EndTelemetry | undefined;
  try {
    const { promise: app, resolve: serve } = Promise.withResolvers<App>();
    server = createAdaptorServer({
      fetch: async (request, bindings) => (await app).fetch(request, bindings),
      // For requests without a Host header, such as those of old health probes.
      hostname: settings.server_host,
      serverOptions: TIMEOUTS,
    }) as Server;
    // Listen first: a server that cannot listen must not start a key rotation.
    const drain = trackResponses(server);
    const url = await listen(server, settings);
    const identity = await createIdentity(storage, policy, env, log);
    await warnAboutExpiry(identity, log);
    const origins = originsOf(settings, url, log);
    const metrics = createMetrics(identity);
    endTelemetry = await startTelemetry({ env, role: 'server', log, metrics: metrics.values });
    endWatch = await watchDatabase(storage, metrics.process, log);
    const own = await openOwnGate(settings, env, log, metrics);
    gate = own;
    const stopping = new AbortController();
    const instances = readKnowledgeFile(settings.knowledge_file);
    const notifier = openNotifier(identity, settings, env, own, origins[0], log);
    const work = startOwnWork(storage, settings, env, log);
    const { tasks, production } = work;
    const chat = openChat({
      storage,
      clock: Date.now,
      answerer,
      budget: {
        turns: settings.chat_turns,
        seconds: settings.chat_seconds,
        tokens: settings.chat_tokens,
      },
      log,
    });
    const { signal } = stopping;
    const services = {
      identity,
      origins,
      isProxy: proxiesOf(settings.server_trusted_proxies, settings.server_public_url),
      gate: own,
      tasks,
      production,
      chat,
      federation: federationOf(instances, env, log),
      notifier,
      stopping: signal,
      log,
      metrics,
    };
    const created = createApp(services);
    serve(created);
    const agents = startAgentRunner(created, services);
    const stopRetention = startRetention(identity, settings, log);
    notifier.start();
    const warning = setInterval(() => void warnAboutExpiry(identity, log), WARN_EVERY_MS).unref();
    await logStartup(storage, settings, env, origins, log);
    log.info(`listening on ${url}`);
    const stop = async (): Promise<void> => {
      clearInterval(warning);
      stopping.abort();
      await Promise.all([agents.stop(), drain(), chat.stop(), work.stop(), stopRetention()]);
      // After the requests, which may send a test.
      await notifier.stop();
      await own.close();
      metrics.process.close();
      await endWatch?.();
      await endTelemetry?.();
      await storage.close();
    };
    return { url, stop };
  } catch (error) {
    server?.close();
    await gate?.close();
    await endWatch?.();
    await endTelemetry?.();
    await storage.close();
    throw error;
  }
}

function leasePolicy(settings: Settings): LeasePolicy {
  for (const name of ['ttl', 'grace_period'] as const) {
    const usual = settings[`license_${name}_seconds`];
    const most = settings[`license_${name}_max_seconds`];
    if (usual > most) {
      const message = `license_${name}_seconds is ${usual}, more than license_${name}_max_seconds, ${most}`;
      throw new ServiceError('invalid_setting', message, {
        remedy: `Lower license_${name}_seconds, or raise license_${name}_max_seconds.`,
      });
    }
  }
  return {
    issuer: settings.license_issuer,
    product: settings.license_product,
    ttl_seconds: settings.license_ttl_seconds,
    ttl_max_seconds: settings.license_ttl_max_seconds,
    grace_period_seconds: settings.license_grace_period_seconds,
    grace_period_max_seconds: settings.license_grace_period_max_seconds,
    registry_enforced: settings.license_registry_enforced,
    clone_policy: settings.license_clone_policy,
  };
}

async function createIdentity(
  storage: Storage,
  policy: LeasePolicy,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<Identity> {
  const clock = Date.now;
  const fault = await issuerFault(storage.read, policy.issuer);
  const signer = await registeredSigner({ storage, clock }, fault ?? loadSigner(env), log);
  if (signer instanceof ServiceError) {
    const { message, remedy, reason } = signer;
    // A server for bots alone needs no key.
    log[reason === 'no_key' ? 'info' : 'warn'](
      `this server issues no leases: ${message}. ${remedy ?? ''}`.trimEnd(),
    );
  }
  if (!policy.registry_enforced) {
    log.warn('license_registry_enforced is off, so revoked leases can still be renewed');
  }
  return { storage, clock, policy, signer };
}

async function registeredSigner(
  identity: IdentityStore,
  loaded: Signer | ServiceError,
  log: Log,
): Promise<Signer | ServiceError> {
  if (loaded instanceof ServiceError) return loaded;
  const former = await activeKey(identity.storage.read);
  const signer = await registerSigner(identity, loaded);
  if (signer instanceof ServiceError) return signer;
  await identity.storage.write((tx) => countersign(tx, signer));
  try {
    await usableSigner(identity.storage.read, signer);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    log.warn(`this server issues no leases: ${error.message}. ${error.remedy ?? ''}`.trimEnd());
    return signer;
  }
  if (former && former.public_key_id !== signer.publicKeyId) {
    log.warn(
      `key ${signer.publicKeyId} now signs leases and key ${former.public_key_id} is retiring; check with \`service-local identity keys rotate-status\``,
    );
    await warnIfUnannounced(identity.storage, signer, log);
  }
  return signer;
}

/** Without a trust root, machines accept a new key only if a known key has endorsed it. */
async function warnIfUnannounced({ read }: Storage, signer: Signer, log: Log): Promise<void> {
  if ((await publishedTrust(read)) ?? (await publishedEndorsement(read))) return;
  log.warn(
    `machines with other keys will reject key ${signer.publicKeyId}, because no earlier key has endorsed it: restart the server with the former key and run \`service-local identity keys announce --key=${signer.x}\``,
  );
}

/** Logs a warning from 60 days before the trust root or its keyset expires. */
async function warnAboutExpiry({ storage, clock }: Identity, log: Log): Promise<void> {
  try {
    for (const { detail } of await expiryWarnings(storage.read, clock())) log.warn(detail);
  } catch (error) {
    log.warn({ err: error, msg: 'the expiry of the trust root could not be checked' });
  }
}

/** @throws ServiceError `invalid_setting` for an invalid file of channels. */
function openNotifier(
  { storage, clock }: IdentityStore,
  { notifications_file }: Settings,
  env: NodeJS.ProcessEnv,
  gate: LicenseGate,
  origin: string,
  log: Log,
): Notifier {
  const settings = readChannelsFile(notifications_file);
  return new Notifier({
    storage,
    clock,
    channels: openChannels(settings, env),
    timeoutMs: settings.timeout_seconds * 1000,
    ownLease() {
      const { lease } = gate.status();
      return lease && { lease_id: lease.lease_id, expires_at: Date.parse(lease.expires_at) };
    },
    origin,
    log,
  });
}

/** @returns the URL of the server. @throws ServiceError `conflict` or `invalid_setting` */
async function listen(
  server: Server,
  { server_host: host, server_port: port }: Settings,
): Promise<string> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    if (error.code === 'EADDRINUSE') {
      throw new ServiceError('conflict', `port ${port} of ${host} is in use`, {
        remedy:
          'Stop the program that uses the port, or choose another port with --port; 0 chooses a free one.',
        cause: error,
      });
    }
    throw new ServiceError('invalid_setting', `cannot listen on ${host}: ${error.message}`, {
      remedy: 'Set --host to an address of this machine and --port to a permitted port.',
      cause: error,
    });
  }
  const { address, family, port: taken } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`;
}

/** Origins under which clients reach the server; the first is the public one. */
function originsOf(
  { server_public_url: publicUrl }: Settings,
  url: string,
  log: Log,
): readonly [string, ...string[]] {
  if (publicUrl !== 'auto') return [publicUrl];
  const { hostname, port } = new URL(url);
  if (!/^(127\.|\[::1\])/.test(hostname)) {
    log.warn(
      `devices on other machines will be rejected: set the origin that they use with --public-url`,
    );
  }
  return [url, `http://localhost:${port}`, `http://127.0.0.1:${port}`];
}

/** Logs where the server keeps its data, and the first step on a new server. */
async function logStartup(
  storage: Storage,
  { home, catalogue_dir: catalogue, custom_code: takesCode }: Settings,
  env: NodeJS.ProcessEnv,
  [origin, named = origin]: readonly [string, ...string[]],
  log: Log,
): Promise<void> {
  const { name } = describeStorage(home, env);
  log.info(
    `home ${home}, database ${name}, catalogue ${catalogue}, custom code ${takesCode ? 'on' : 'off'}, console ${named}/console`,
  );
  if (await hasAdministrators(storage.read)) return;
  log.info(
    'there is no administrator yet: add one on this machine, with the same SERVICE_LOCAL_HOME or DATABASE_URL: `service-local identity administrators add NAME`',
  );
}

/** Tracks open responses. The returned function closes the server once all responses are sent. */
function trackResponses(server: Server): () => Promise<void> {
  const open = new Set<ServerResponse>();
  let isEnding = false;
  server.prependListener('request', (_request: unknown, answer: ServerResponse) => {
    open.add(answer);
    answer.once('close', () => open.delete(answer));
    if (isEnding) answer.setHeader('Connection', 'close');
  });
  return async () => {
    isEnding = true;
    const closed = once(server, 'close');
    server.close();
    for (const answer of open) {
      const { socket } = answer;
      if (!answer.headersSent) answer.setHeader('Connection', 'close');
      else if (answer.writableFinished) socket?.end();
      // The socket of a finished response is no longer available from the response.
      else answer.once('finish', () => socket?.end());
    }
    const late = setTimeout(() => server.closeAllConnections(), STOP_WITHIN_MS);
    await closed;
    clearTimeout(late);
  };
}
