import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { TLSSocket } from 'node:tls';
import type { DiagnosticsChannel } from 'undici';
import type { getHealth } from '../api/health.ts';
import { daemonFiles } from '../../daemon/files.ts';
import { readState, type DaemonState } from '../../daemon/state.ts';
import { createClient } from '../client/client.ts';
import { readDeviceKey, type DeviceKey } from '../client/device-key.ts';
import { isLocked } from '../client/lock.ts';
import { readLicense, type License } from '../gate/license.ts';
import { runningTime, type Boot, type RunningTime } from '../lease/known-time.ts';
import type { LicenseFiles } from '../license-files.ts';

/** The machine that is looked at. */
export interface Machine {
  /** Absolute, as the others. */
  readonly home: string;
  readonly catalogueDir: string;
  readonly files: LicenseFiles;
  readonly env: NodeJS.ProcessEnv;
  /** Origin of the server that gives it leases. */
  readonly url: string;
  /** Asks no server. */
  readonly offline: boolean;
  /** How long the server may take. */
  readonly timeoutMs: number;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  readonly boot: () => Boot;
}

/** What a server says to anybody. */
export interface ServerAnswer {
  readonly ms: number;
  /** By how many milliseconds its clock is ahead of this one's; undefined when it does not say. */
  readonly ahead: number | undefined;
  /** When the certificate ends with which it showed who it is. */
  readonly certificateEnds: number | undefined;
  /** What somebody should know who uses it. */
  readonly warning: string | undefined;
}

/** What several checks need, each read once and when it is first asked for. */
export interface Facts extends Machine {
  readonly license: () => Promise<License>;
  /** As it is now. */
  readonly running: () => Promise<RunningTime | undefined>;
  /** Rejects with a ServiceError, as the others. */
  readonly key: () => Promise<DeviceKey | undefined>;
  readonly state: () => Promise<DaemonState>;
  /** Throws a ServiceError where that cannot be seen. */
  readonly isDaemonRunning: () => boolean;
  /** Undefined when there is none to be asked: offline, or without a key. */
  readonly server: () => Promise<ServerAnswer | undefined>;
}

export function factsOf(machine: Machine): Facts {
  const { files, clock, boot, offline } = machine;
  const license = once(() => readLicense(files, clock()));
  const key = once(() => readDeviceKey(files.key));
  return {
    ...machine,
    license,
    key,
    running: once(async () => {
      const { leases, running } = await license();
      return leases[0] && runningTime(running, leases[0].claims.lease_id, boot());
    }),
    state: once(() => readState(files.state)),
    isDaemonRunning: once(() => isLocked(daemonFiles(machine.home).lock)),
    server: once(async () =>
      offline || (await key()) === undefined ? undefined : askServer(machine),
    ),
  };
}

function once<T>(read: () => T): () => T {
  let value: { readonly read: T } | undefined;
  return () => (value ??= { read: read() }).read;
}

/** @throws ServiceError `server_unreachable` */
async function askServer({ url, timeoutMs, clock }: Machine): Promise<ServerAnswer> {
  const { hostname } = new URL(url);
  let certificateEnds: number | undefined;
  const onConnected = (message: unknown): void => {
    const { socket, connectParams } = message as DiagnosticsChannel.ClientConnectedMessage;
    if (!(socket instanceof TLSSocket) || connectParams.hostname !== hostname) return;
    const ends = Date.parse(socket.getPeerCertificate().valid_to);
    if (Number.isFinite(ends)) certificateEnds = ends;
  };
  let ahead: number | undefined;
  let warning: string | undefined;
  let sent = clock();
  const client = createClient({
    url,
    timeoutMs,
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
    return { ms: Math.round(performance.now() - began), ahead, certificateEnds, warning };
  } finally {
    unsubscribe(CONNECTED, onConnected);
  }
}

/** Of undici, when a connection is there. */
const CONNECTED = 'undici:client:connected';
