import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { TLSSocket } from 'node:tls';
import type { DiagnosticsChannel } from 'undici';
import type { getHealth, getReadiness } from '../api/health.ts';
import type { dryRunRenewal, LeaseAnswer } from '../api/leases.ts';
import { daemonFiles } from '../../daemon/files.ts';
import { readNote, seeDaemon, type DaemonNote } from '../../daemon/note.ts';
import { readState, type DaemonState } from '../../daemon/state.ts';
import { ServiceError } from '../base/errors.ts';
import { createClient, type Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { readDeviceKey, type DeviceKey } from '../client/device-key.ts';
import { connectAsDevice, fetchKeyset, requireTrusted } from '../client/lease-server.ts';
import { readLicense, type License } from '../gate/license.ts';
import { runningTime, type Boot, type RunningTime } from '../lease/known-time.ts';
import type { TrustOptions } from '../lease/trust.ts';
import type { LicenseFiles } from '../gate/license-files.ts';

/** The machine that is looked at. */
export interface Machine {
  /** Absolute, as the others. */
  readonly home: string;
  readonly catalogueDir: string;
  readonly files: LicenseFiles;
  readonly env: NodeJS.ProcessEnv;
  /** Origin of the server that gives it leases. */
  readonly url: string;
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** Who said so: whoever looks, for this once; the settings or the daemon; or nobody. */
  readonly urlBy: 'option' | 'machine' | 'default';
  /** Asks no server. */
  readonly offline: boolean;
  /** How long the server may take for all that it is asked. */
  readonly timeoutMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  readonly boot: () => Boot;
  /** `machineHash` of this machine; by default as `ownMachineHash` reads it. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
  /** The setting license_product, and whether it has its default value. */
  readonly product?: { readonly name: string; readonly isDefault: boolean } | undefined;
  /** Client with an administrator's login, where the server's own state is examined, too. */
  readonly administrator?: (() => Promise<Client>) | undefined;
}

/** What a server says to anybody. */
export interface ServerAnswer {
  readonly ms: number;
  /** By how many milliseconds its clock is ahead of this one's; undefined when it does not say. */
  readonly ahead: number | undefined;
  /** How long the certificate lasts with which it showed who it is. */
  readonly certificate: { readonly begins: number; readonly ends: number } | undefined;
  /** What somebody should know who uses it. */
  readonly warning: string | undefined;
  /** Whether nothing trades with its database because it may be a copy. */
  readonly isHeld: boolean;
  /** Warning about its trust root: it expires soon, or lacks the signing key. */
  readonly trust: readonly string[];
}

/** What several checks need, each read once and when it is first asked for. */
export interface Facts extends Machine {
  readonly license: () => Promise<License>;
  /** As it is now. */
  readonly running: () => Promise<RunningTime | undefined>;
  /** Rejects with a ServiceError, as the others. */
  readonly key: () => Promise<DeviceKey | undefined>;
  readonly state: () => Promise<DaemonState>;
  /** The daemon that runs, or ran last. */
  readonly note: () => Promise<DaemonNote | undefined>;
  /** Rejects with a ServiceError where that cannot be seen. */
  readonly isDaemonRunning: () => Promise<boolean>;
  /** Undefined when there is none to be asked: offline, or without a key. */
  readonly server: () => Promise<ServerAnswer | undefined>;
  /**
   * What the server would give for a renewal, asked with the key and what else is here.
   * Rejects with a ServiceError.
   */
  readonly renewal: () => Promise<AnswerOf<typeof dryRunRenewal>>;
  /** Whether the lease is one that people brought, and nobody else renews it. */
  readonly isBrought: () => Promise<boolean>;
}

export function factsOf(machine: Machine): Facts {
  const { files, clock, boot, offline, timeoutMs } = machine;
  const license = once(() => readLicense(files, clock()));
  const key = once(() => readDeviceKey(files.key));
  const daemon = daemonFiles(machine.home);
  const note = once(() => readNote(daemon.note));
  const state = once(() => readState(files.state));
  // One for all that is asked.
  const timeout = once(() => AbortSignal.timeout(timeoutMs));
  return {
    ...machine,
    license,
    key,
    running: once(async () => {
      const { leases, running } = await license();
      return leases[0] && runningTime(running, leases[0].claims.lease_id, boot());
    }),
    state,
    note,
    isDaemonRunning: once(async () => (await seeDaemon(daemon)).isRunning),
    server: once(async () =>
      offline || (await key()) === undefined ? undefined : askServer(machine, timeout()),
    ),
    renewal: once(async () => {
      const [own, held, { pending }] = await Promise.all([key(), license(), state()]);
      return dryRun(machine, own!, held, pending, timeout());
    }),
    isBrought: once(async () => {
      const all = [license(), state(), note()] as const;
      const [{ leases }, { imported_lease_id }, last] = await Promise.all(all);
      return last === undefined && leases[0]?.claims.lease_id === imported_lease_id;
    }),
  };
}

function once<T>(read: () => T): () => T {
  let value: { readonly read: T } | undefined;
  return () => (value ??= { read: read() }).read;
}

/** @throws ServiceError `server_unreachable` */
async function askServer({ url, clock }: Machine, signal: AbortSignal): Promise<ServerAnswer> {
  const { hostname } = new URL(url);
  let certificate: ServerAnswer['certificate'];
  const onConnected = (message: unknown): void => {
    const { socket, connectParams } = message as DiagnosticsChannel.ClientConnectedMessage;
    if (!(socket instanceof TLSSocket) || connectParams.hostname !== hostname) return;
    const { valid_from, valid_to } = socket.getPeerCertificate();
    const [begins, ends] = [Date.parse(valid_from), Date.parse(valid_to)];
    if (Number.isFinite(ends - begins)) certificate = { begins, ends };
  };
  let ahead: number | undefined;
  let warning: string | undefined;
  let sent = clock();
  const client = createClient({
    url,
    signal,
    warn: (text) => void (warning = text),
    onRequest: () => void (sent = clock()),
    onAnswer({ date }) {
      const theirs = typeof date === 'string' ? Date.parse(date) : NaN;
      // They leave out the milliseconds, and it was about half-way that they looked.
      if (Number.isFinite(theirs)) ahead = Math.round(theirs + 500 - (sent + clock()) / 2);
    },
  });
  subscribe(CONNECTED, onConnected);
  const began = performance.now();
  try {
    await client.call<typeof getHealth>('get', '/healthz', {});
    const ms = Math.round(performance.now() - began);
    return { ms, ahead, certificate, warning, ...(await readReadiness(client)) };
  } finally {
    unsubscribe(CONNECTED, onConnected);
  }
}

/** Nothing where it does not report it, as while its database does not answer. */
async function readReadiness(client: Client): Promise<Pick<ServerAnswer, 'isHeld' | 'trust'>> {
  try {
    const answer = await client.call<typeof getReadiness>('get', '/readyz', {});
    const { missing, warnings = [] } = answer;
    const trust = [...missing, ...warnings].filter(
      ({ part, reason }) => part === 'trust_root' || reason === 'unsigned_key',
    );
    return {
      isHeld: missing.some(({ part }) => part === 'trading'),
      trust: trust.map(({ detail }) => detail),
    };
  } catch {
    return { isHeld: false, trust: [] };
  }
}

/** Asks what the next renewal would ask. */
async function dryRun(
  { url, insecure, files, clock, machineHash }: Machine,
  key: DeviceKey,
  { leases: [held], trusted }: License,
  pending: DaemonState['pending'],
  signal: AbortSignal,
): Promise<AnswerOf<typeof dryRunRenewal>> {
  const isSame = pending !== null && pending.lease_id === (held?.claims.lease_id ?? null);
  const lease = isSame && pending.without_lease ? undefined : held;
  const renewal_id = isSame ? pending.renewal_id : randomUUID();
  const client = connectAsDevice({ url, insecure, signal, clock, machineHash }, key);
  requireRenewable(await fetchKeyset(client), { pin: files.pin, held: trusted, now: clock() });
  return client.call<typeof dryRunRenewal>('post', '/auth/license/leases/dry-run', {
    body: {
      renewal_id,
      ...(lease && { lease: JSON.parse(lease.text) as LeaseAnswer['lease'] }),
    },
  });
}

/** With an expired keyset, a renewal uses the held keys. */
function requireRenewable(document: unknown, options: TrustOptions): void {
  try {
    requireTrusted(document, options);
  } catch (error) {
    const isExpired = error instanceof ServiceError && error.reason === 'keyset_expired';
    if (!isExpired || options.held === undefined) throw error;
  }
}

/** Of undici, when a connection is there. */
const CONNECTED = 'undici:client:connected';
