import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi, type TestContext } from 'vitest';
import { runLoop, type LoopOptions } from '../../daemon/loop.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import { createLog } from '../../src/base/log.ts';
import { inProcess } from '../cli/in-process.ts';
import type { Result } from '../cli/service-local.ts';
import { newWorld } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { TestDatabase } from '../storage/databases.ts';
import { DAY, HOUR } from './rig.ts';

const START = Date.UTC(2026, 0, 5, 9, 30);

/**
 * A real server and its administrator, who work through the CLI, and the machines that it licenses.
 * Server, CLI and daemons share one calendar, which only the test moves.
 */
export interface Issuer {
  readonly database: TestDatabase;
  readonly url: () => string;
  readonly serverLog: () => string;
  /** Runs `identity …`, and expects success. @returns its JSON. */
  readonly identity: <T = Record<string, unknown>>(...words: string[]) => Promise<T>;
  /** Runs `identity …`. */
  readonly tryIdentity: (...words: string[]) => Promise<Result>;
  /** The option with a recovery code of the administrator, each of which works once. */
  readonly code: () => string[];
  /** Creates a signing key in a file. @returns its id, its public key and the PEM file. */
  readonly newKey: (name: string) => Promise<SigningKeyFile>;
  /** Restarts the server with another signing key. */
  readonly restart: (key?: SigningKeyFile) => Promise<void>;
  readonly published: () => Promise<string>;
  /** An enrollment code for the installation `tokyo`. */
  readonly enrollmentCode: () => Promise<string>;
  /** Moves the calendar, and has each daemon look whenever it would have. */
  readonly pass: (days: number) => Promise<void>;
  /** The same name is the same home. */
  readonly newMachine: (name: string, env?: Readonly<Record<string, string>>) => LicensedMachine;
}

interface SigningKeyFile {
  readonly path: string;
  readonly public_key_id: string;
  readonly public_key: string;
}

/** A machine with a home of its own, and a daemon once it is started. */
export interface LicensedMachine {
  readonly files: LicenseFiles;
  /** Runs `license …` on this machine. */
  readonly license: (...words: string[]) => Promise<Result>;
  readonly cli: (...words: string[]) => Promise<Result>;
  /** Starts the daemon, which stops with the test. @returns what stops it before. */
  readonly startDaemon: () => Promise<() => Promise<void>>;
  /** Everything that the daemon logged. */
  readonly log: () => string;
  /** States of the lease at all looks of the daemon since the last call. */
  readonly takeStates: () => string[];
  readonly lease: () => Promise<{ readonly public_key_id: string; readonly lease_id: string }>;
  /** Version of the accepted keyset and of its root, and the ids of its keys. */
  readonly trusted: () => Promise<{
    readonly keyset: number;
    readonly root: number;
    readonly keys: readonly string[];
  }>;
}

interface Daemon {
  /** Resolves when it waits at the present time. */
  readonly settled: () => Promise<void>;
  /** Milliseconds since the Unix epoch at which it must look again. */
  readonly next: () => number;
  readonly look: () => void;
}

export async function newIssuer(
  kind: Storage['kind'],
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<Issuer> {
  vi.useFakeTimers({ toFake: ['Date'], now: START });
  onTestFinished(() => void vi.useRealTimers());
  const directory = await mkdtemp(join(tmpdir(), 'service-local-rotation-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const world = await newWorld(kind);
  onTestFinished(() => world.close());
  world.now = Date.now();
  const ada = await world.newPerson();
  const vendor = [world.identity, 'operator'] as const;
  await createCustomer(...vendor, { customer_id: 'acme', name: 'Acme' });
  await createPlan(...vendor, { plan_id: 'pro', name: 'Pro', entitlements: ['live_trading'] });
  const contract = { contract_id: 'c', customer_id: 'acme', plan_id: 'pro' };
  await createContract(...vendor, { ...contract, ends_at: Date.UTC(2099, 0) });
  await createInstallation(...vendor, { deployment_id: 'tokyo', contract_id: 'c', name: 'Tokyo' });
  let server: ServerHere = await serveHere(world.database);
  onTestFinished(() => server.stop());
  let token = '';
  let tokenUntil = 0;

  const tryIdentity = async (...words: string[]): Promise<Result> => {
    // Tokens expire while months pass.
    if (Date.now() >= tokenUntil) {
      world.now = Date.now();
      token = await ada.token('license', 'admin', 'read');
      tokenUntil = Date.now() + HOUR;
    }
    return inProcess(['identity', ...words], {
      cwd: directory,
      env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
    });
  };
  const identity = async <T>(...words: string[]): Promise<T> => {
    // Options come before `--`.
    const [verb = '', subverb = '', ...rest] = words;
    const { code, stdout, stderr } = await tryIdentity(verb, subverb, '--json', ...rest);
    expect({ words, code, error: code === 0 ? '' : stderr }).toEqual({ words, code: 0, error: '' });
    return JSON.parse(stdout) as T;
  };
  let used = 0;
  const daemons: Daemon[] = [];

  return {
    database: world.database,
    url: () => server.url,
    serverLog: () => server.log(),
    identity,
    tryIdentity,
    code: () => ['--code', ada.recovery_codes[used++]!],
    newKey: (name) => identity<SigningKeyFile>('keys', 'generate', '--out', `${name}.pem`),
    async restart(key) {
      const { url } = server;
      await server.stop();
      server = await serveHere(world.database, {
        // Machines keep the address.
        SERVICE_LOCAL_SERVER_PORT: new URL(url).port,
        ...(key && {
          SERVICE_AUTH_LICENSE_LEASE_PRIVATE_KEY_PEM: await readFile(key.path, 'utf8'),
        }),
      });
    },
    published: async () => (await fetch(`${server.url}/.well-known/license-keys.json`)).text(),
    async enrollmentCode() {
      const made = await tryIdentity('devices', 'enroll-code', '--deployment', 'tokyo');
      expect({ code: made.code, error: made.code === 0 ? '' : made.stderr }).toEqual({
        code: 0,
        error: '',
      });
      return made.stdout.trim();
    },
    newMachine: (name, env) => {
      const home = join(directory, name);
      return newMachine(home, { ...env, SERVICE_LOCAL_SERVER_URL: server.url }, daemons, (stop) =>
        onTestFinished(stop),
      );
    },
    async pass(days) {
      const end = Date.now() + days * DAY;
      while (Date.now() < end) {
        const next = Math.min(end, ...daemons.map((daemon) => daemon.next()));
        // At least a minute, which is the longest that a daemon waits.
        vi.setSystemTime(Math.min(end, Math.max(next, Date.now() + 60_000)));
        for (const daemon of daemons) daemon.look();
        await Promise.all(daemons.map((daemon) => daemon.settled()));
      }
    },
  };
}

function newMachine(
  home: string,
  variables: Readonly<Record<string, string>>,
  daemons: Daemon[],
  onEnd: (stop: () => Promise<void>) => void,
): LicensedMachine {
  const env = { ...variables, SERVICE_LOCAL_HOME: home };
  const files = licenseFiles(home, env);
  const lines: string[] = [];
  let states: string[] = [];
  const cli = (...words: string[]): Promise<Result> => inProcess(words, { env });
  return {
    files,
    cli,
    license: (...words) => cli('license', ...words),
    log: () => lines.join('\n'),
    takeStates() {
      const taken = states;
      states = [];
      return taken;
    },
    async lease() {
      const { payload } = JSON.parse(await readFile(files.lease, 'utf8')) as { payload: string };
      return JSON.parse(Buffer.from(payload, 'base64').toString()) as never;
    },
    async trusted() {
      const { trusted } = JSON.parse(await readFile(files.root, 'utf8')) as {
        readonly trusted: { readonly roots: unknown[]; readonly keyset: { payload: string } };
      };
      const keyset = JSON.parse(Buffer.from(trusted.keyset.payload, 'base64').toString()) as {
        version: number;
        keys: { kid: string }[];
      };
      const keys = keyset.keys.map(({ kid }) => kid);
      return { keyset: keyset.version, root: trusted.roots?.length ?? 0, keys };
    },
    async startDaemon() {
      const stop = new AbortController();
      let settled = Promise.withResolvers<void>();
      let resume = (): void => {};
      let next = 0;
      const wait: LoopOptions['wait'] = (_ms, alarm) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        resume = resolve;
        alarm.addEventListener('abort', () => resolve());
        settled.resolve();
        return promise;
      };
      const machine = {
        files,
        url: variables['SERVICE_LOCAL_SERVER_URL']!,
        clock: () => Date.now(),
        boot: () => ({ boot_id: 'boot', uptime_seconds: (Date.now() - START) / 1000 }),
        random: () => 0.5,
        warn: (text: string) => void lines.push(text),
      };
      const ended = runLoop(machine, {
        signal: stop.signal,
        log: createLog((line) => lines.push(line), false),
        wait,
        onTick({ state, status }) {
          next = Date.parse(state.next_attempt_at ?? '') || Number.POSITIVE_INFINITY;
          states.push(status?.state ?? 'none');
        },
      });
      ended.catch(settled.reject);
      const daemon: Daemon = {
        settled: () => settled.promise,
        next: () => next,
        look() {
          settled = Promise.withResolvers<void>();
          resume();
        },
      };
      daemons.push(daemon);
      const end = async (): Promise<void> => {
        daemons.splice(0, daemons.length, ...daemons.filter((other) => other !== daemon));
        stop.abort();
        await ended;
      };
      onEnd(end);
      await settled.promise;
      return end;
    },
  };
}
