import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { TLSSocket } from 'node:tls';
import type { OtherServer } from '../client/other-server.ts';
import type { DiagnosticsChannel } from 'undici';
import type { getHealth, getReadiness } from '../api/health.ts';
import type { dryRunRenewal, LeaseAnswer } from '../api/leases.ts';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { readNote, findDaemon, type DaemonNote } from '../../daemon/note.ts';
import { readState, type DaemonState } from '../../daemon/daemon-state.ts';
import { ServiceError } from '../base/errors.ts';
import { createClient, type Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { readDeviceKey, type DeviceKey } from '../client/device-key.ts';
import { connectAsDevice, fetchKeyset, requireTrusted } from '../client/lease-server.ts';
import { readLicense, type License } from '../gate/license.ts';
import { runningTime, type Boot, type RunningTime } from '../lease/known-time.ts';
import type { TrustOptions } from '../lease/trust.ts';
import type { LicenseFiles } from '../gate/license-files.ts';

/** The machine to examine. Paths are absolute. */
export interface Machine {
  readonly home: string;
  readonly catalogueDir: string;
  readonly files: LicenseFiles;
  readonly env: NodeJS.ProcessEnv;
  /** Origin of the server that issues its leases. */
  readonly url: string;
  /** Allows plain http to another host. */
  readonly insecure?: boolean | undefined;
  /** Source of `url`: the option of this command, the settings or the daemon, or the default. */
  readonly urlBy: 'option' | 'machine' | 'default';
  /** Set if `url` overrides the server of the user file. */
  readonly otherServer?: OtherServer | undefined;
  /** Sends no requests. */
  readonly offline: boolean;
  /** Timeout for all requests together. */
  readonly timeoutMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  readonly boot: () => Boot;
  /** `machineHash` of this machine; by default `ownMachineHash`. */
  readonly machineHash?: (() => Promise<string | undefined>) | undefined;
  /** The setting license_product, and whether it has its default value. */
  readonly product?: { readonly name: string; readonly isDefault: boolean } | undefined;
  /** Client with an administrator's login, to examine the state of the server, too. */
  readonly administrator?: (() => Promise<Client>) | undefined;
}

/** Facts that a server reports without authentication. */
export interface ServerAnswer {
  /** Response time. */
  readonly ms: number;
  /** Lead of its clock over that of this machine, ms; undefined if it does not send its time. */
  readonly ahead: number | undefined;
  /** Validity of its TLS certificate, ms since the Unix epoch; undefined without TLS. */
  readonly certificate: { readonly begins: number; readonly ends: number } | undefined;
  /** Warning about the connection, such as a missing encryption. */
  readonly warning: string | undefined;
  /** Whether nothing trades with its database because it may be a copy. */
  readonly isHeld: boolean;
  /** Warnings about its trust root: it expires soon, or its keyset lacks the signing key. */
  readonly trust: readonly string[];
}

/** Data that several checks need, each read once, on first use. */
export interface Facts extends Machine {
  readonly license: () => Promise<License>;
  readonly running: () => Promise<RunningTime | undefined>;
  /** Rejects with a ServiceError. */
  readonly key: () => Promise<DeviceKey | undefined>;
  readonly state: () => Promise<DaemonState>;
  /** Describes the daemon that is running or ran last. */
  readonly note: () => Promise<DaemonNote | undefined>;
  /** Rejects with a ServiceError if that cannot be determined. */
  readonly isDaemonRunning: () => Promise<boolean>;
  /** Undefined without a request: offline, or without a device key. */
  readonly server: () => Promise<ServerAnswer | undefined>;
  /** Answer to a dry run of the next renewal. Rejects with a ServiceError. */
  readonly renewal: () => Promise<AnswerOf<typeof dryRunRenewal>>;
  /** Whether people import the leases of this machine, so that no daemon renews them. */
  readonly isRenewedByHand: () => Promise<boolean>;
}

export function factsOf(machine: Machine): Facts {
  const { files, clock, boot, offline, timeoutMs } = machine;
  const license = once(() => readLicense(files, clock()));
  const key = once(() => readDeviceKey(files.key));
  const daemon = daemonFiles(machine.home);
  const note = once(() => readNote(daemon.note));
  const state = once(() => readState(files.state));
  // Shared by all requests.
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
    isDaemonRunning: once(async () => (await findDaemon(daemon)).isRunning),
    server: once(async () =>
      offline || (await key()) === undefined ? undefined : askServer(machine, timeout()),
    ),
    renewal: once(async () => {
      const [own, held, { pending }] = await Promise.all([key(), license(), state()]);
      return dryRun(machine, own!, held, pending, timeout());
    }),
    isRenewedByHand: once(async () => {
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
      // The header lacks milliseconds, and was written about halfway through the request.
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

/** Returns empty values if the server does not report its readiness. */
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

/** Sends the next renewal as a dry run. */
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

/** Channel on which undici reports new connections. */
const CONNECTED = 'undici:client:connected';
