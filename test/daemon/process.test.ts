import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { writePrivateFile } from '../../src/client/private-file.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from '../client/certificate.ts';
import { BASIC_ENV, BIN, serviceLocal, type Result } from '../cli/service-local.ts';
import { startServer } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import { newDatabase } from '../storage/databases.ts';
import { listenAt } from './service-manager.ts';

let directory: string;
let home: string;
const ends: (() => unknown)[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-daemon-'));
  home = join(directory, 'home');
});

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
  rmSync(directory, { recursive: true });
});

type Variables = Readonly<Record<string, string>>;

/** `service-local daemon …` */
const daemon = (words: readonly string[], env: Variables = {}): Promise<Result> =>
  serviceLocal(['daemon', ...words], { env: { SERVICE_LOCAL_HOME: home, ...env } });
const statusOf = async (): Promise<Record<string, unknown>> =>
  JSON.parse((await daemon(['status', '--json'])).stdout) as Record<string, unknown>;

interface RunningDaemon {
  readonly pid: number;
  /** The line with this, once it was logged. */
  readonly logged: (part: string) => Promise<string>;
  readonly ended: Promise<readonly [code: number | null, signal: string | null]>;
}

/** `service-local daemon run`, once it has begun its work. */
async function runDaemon(env: Variables = {}): Promise<RunningDaemon> {
  const child = spawn(process.execPath, [BIN, 'daemon', 'run'], {
    cwd: directory,
    env: { ...BASIC_ENV, HOME: directory, SERVICE_LOCAL_HOME: home, ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  ends.push(() => child.kill('SIGKILL') && ended);
  const lines: string[] = [];
  const { promise: isOver, reject } = Promise.withResolvers<never>();
  isOver.catch(() => {});
  const input = createInterface(child.stderr!).on('line', (line) => lines.push(line));
  void ended.then(() => reject(new Error(`the daemon ended: ${lines.join('\n')}`)));
  await Promise.race([once(child, 'message'), isOver]);
  return {
    pid: child.pid!,
    ended,
    async logged(part) {
      for (;;) {
        const found = lines.find((line) => line.includes(part));
        if (found !== undefined) return found;
        await Promise.race([once(input, 'line'), isOver]);
      }
    },
  };
}

/** Makes the machine a device of some server, without a lease yet. */
const enrol = (): Promise<unknown> => deviceKeyAt(join(home, 'device.key'));

/** @returns its port. */
async function listen(server: Server): Promise<number> {
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Requests that came to a server, in their order: each resolves when it has come. */
function requests(): { readonly seen: RequestListener; readonly next: () => Promise<string> } {
  const come: string[] = [];
  const wanted: ((url: string) => void)[] = [];
  return {
    seen({ method, url }) {
      const text = `${method} ${url}`;
      const first = wanted.shift();
      if (first) first(text);
      else come.push(text);
    },
    next: () =>
      come.length > 0
        ? Promise.resolve(come.shift()!)
        : new Promise((resolve) => wanted.push(resolve)),
  };
}

/** Answers each request with the same error, as a server of leases. */
const failing =
  (seen: RequestListener): RequestListener =>
  (request, response) => {
    response.writeHead(503, { 'service-name': 'service-local' });
    const detail = 'too much to do';
    response.end(JSON.stringify({ code: 'overloaded', detail, request_id: 'r-1' }));
    seen(request, response);
  };

describe('in the background', () => {
  test('it is started, looked at and stopped', async () => {
    const started = await daemon(['start']);
    expect(started).toMatchObject({ code: 0, stderr: '' });
    const [, pid] = /^The daemon runs as the process (\d+)\.\n$/.exec(started.stdout)!;
    ends.push(() => daemon(['stop']));

    const again = await daemon(['start', '--json']);
    expect(again.code).toBe(6);
    expect(JSON.parse(again.stdout)).toMatchObject({
      error: {
        code: 'conflict',
        reason: 'locked',
        message: `a daemon runs for this home already, as the process ${pid}`,
      },
    });

    const status = await daemon(['status']);
    expect(status).toMatchObject({ code: 0, stderr: '' });
    expect(status.stdout).toContain(`The daemon runs as the process ${pid}, since 20`);
    expect(status.stdout).toContain('lease: none\n');

    expect(await daemon(['stop'])).toEqual({
      code: 0,
      stdout: `The daemon, process ${pid}, has stopped.\n`,
      stderr: '',
    });
    const stopped = await daemon(['status']);
    expect(stopped.code).toBe(3);
    expect(stopped.stdout).toMatch(/^No daemon runs for .*\nThe last one was stopped at 20/);
    const logs = await daemon(['logs', '-n', '1']);
    expect(logs.stdout).toMatch(/^20\S+Z info stopped\n$/);
    expect(await daemon(['stop', '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"stopped": false') as string,
    });
  });

  test('what keeps it from starting is told by who starts it', async () => {
    mkdirSync(home);
    chmodSync(home, 0o777);
    const { code, stderr } = await daemon(['start']);
    expect(code).toBe(3);
    expect(stderr).toContain(`error invalid_data: ${home} can be written to by others`);
    expect(stderr).toContain(`chmod 700 ${home}`);
  });
});

test('of two at once, one keeps the home', async () => {
  const [first, second] = await Promise.allSettled([runDaemon(), runDaemon()]);
  const outcomes = [first, second];
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const refused = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(String(refused?.reason)).toContain('a daemon runs for this home already');
});

test('one that was killed leaves nothing in the way of the next', async () => {
  const killed = await runDaemon();
  process.kill(killed.pid, 'SIGKILL');
  expect(await killed.ended).toEqual([null, 'SIGKILL']);
  const status = await daemon(['status']);
  expect(status.code).toBe(3);
  expect(status.stdout).toContain('was killed, or the machine was switched off');
  const { pid } = await runDaemon();
  expect(await statusOf()).toMatchObject({ running: true, pid, stopped_at: null });
});

test('its files are of nobody else, and none is a way to another place', async () => {
  const { pid, ended } = await runDaemon();
  expect(statSync(home).mode & 0o777).toBe(0o700);
  for (const name of ['daemon.lock', 'daemon.log', 'daemon_state.json']) {
    expect(statSync(join(home, name)).mode & 0o777).toBe(0o600);
  }
  process.kill(pid, 'SIGTERM');
  await ended;
  const elsewhere = join(directory, 'elsewhere');
  for (const name of ['daemon.log', 'daemon_state.json']) {
    rmSync(join(home, name));
    symlinkSync(elsewhere, join(home, name));
  }
  const { logged } = await runDaemon();
  expect(await logged('the log is not kept')).toContain('daemon.log');
  expect(lstatSync(join(home, 'daemon_state.json')).isFile()).toBe(true);
  expect(existsSync(elsewhere)).toBe(false);
});

describe('a service manager', () => {
  test('hears that it works, how, that it is alive, and that it ends', async () => {
    const socket = join(directory, 'notify');
    const manager = listenAt(socket);
    ends.push(manager.close);
    const { pid, ended } = await runDaemon({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: '100000' });
    expect(await manager.next()).toBe('READY=1');
    expect(await manager.until('STATUS')).toBe(
      'STATUS=no lease; no attempt is planned: this machine is not enrolled yet',
    );
    expect(await manager.until('WATCHDOG')).toBe('WATCHDOG=1');
    process.kill(pid, 'SIGTERM');
    expect(await manager.until('STOPPING')).toBe('STOPPING=1');
    expect(await ended).toEqual([0, null]);
  });

  /** Writes down what it is called with, and fails where a file says so. */
  const standIn = (name: string): string => {
    const path = join(directory, 'bin');
    mkdirSync(path, { recursive: true });
    const script = `#!/bin/sh
echo "$*" >> '${directory}/calls'
[ ! -e '${directory}/broken' ] || case "$*" in *reload) echo 'Failed to connect to bus' >&2; exit 1;; esac
`;
    writeFileSync(join(path, name), script, { mode: 0o755 });
    return path;
  };
  const calls = (): string[] => {
    const text = readFileSync(join(directory, 'calls'), 'utf8');
    rmSync(join(directory, 'calls'));
    return text.trim().split('\n');
  };

  test('is given the daemon, and has it taken away again', async () => {
    const env = {
      PATH: `${standIn('systemctl')}:${process.env['PATH']}`,
      HOME: join(directory, 'some "one'),
    };
    const unit = join(env.HOME, '.config/systemd/user/service-local.service');
    const installed = await daemon(['install'], env);
    expect(installed).toMatchObject({ code: 0, stderr: '' });
    expect(installed.stdout).toContain(`${unit} is written`);
    expect(calls()).toEqual([
      '--user disable --now service-local.service',
      '--user daemon-reload',
      '--user enable --now service-local.service',
    ]);
    const printed = await daemon(['install', '--print'], env);
    expect(readFileSync(unit, 'utf8')).toBe(printed.stdout);
    expect(existsSync(join(directory, 'calls'))).toBe(false);

    expect((await daemon(['uninstall'], env)).stdout).toBe(`${unit} is removed.\n`);
    expect(calls()).toEqual(['--user disable --now service-local.service', '--user daemon-reload']);
    expect(existsSync(unit)).toBe(false);

    writeFileSync(join(directory, 'broken'), '');
    const broken = await daemon(['install'], env);
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain('systemctl --user daemon-reload: Failed to connect to bus');
  });

  test('is not given a second one', async () => {
    const { pid } = await runDaemon();
    const env = {
      PATH: `${standIn('systemctl')}:${process.env['PATH']}`,
      HOME: join(directory, 'person'),
    };
    const { code, stderr } = await daemon(['install'], env);
    expect(code).toBe(6);
    expect(stderr).toContain('service-local daemon stop');
    expect(existsSync(env.HOME)).toBe(false);
    expect(process.kill(pid, 0)).toBe(true);
  });
});

describe('signals', () => {
  test('SIGTERM ends it in the middle of a request', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(seen));
    await enrol();
    const { pid, ended } = await runDaemon({
      SERVICE_LOCAL_SERVER_URL: `http://127.0.0.1:${port}`,
    });
    await next();
    const asked = performance.now();
    process.kill(pid, 'SIGTERM');
    expect(await ended).toEqual([0, null]);
    // A second is what is promised; the machine may be busy with other tests.
    expect(performance.now() - asked).toBeLessThan(5000);
  });

  test('SIGHUP has it ask at once, and not when it would have', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(failing(seen)));
    await enrol();
    const { pid, logged } = await runDaemon({
      SERVICE_LOCAL_SERVER_URL: `http://127.0.0.1:${port}`,
    });
    const first = await next();
    await logged('too much to do');
    process.kill(pid, 'SIGHUP');
    expect(await next()).toBe(first);
    expect(await statusOf()).toMatchObject({
      last_error: { code: 'overloaded', message: 'too much to do (request_id r-1)' },
      next_attempt_because: 'retry',
    });
  });
});

test('a machine that is enrolled while it runs gets its lease at once', async () => {
  const database = await newDatabase('sqlite');
  ends.push(database.remove);
  const storage = await openStorage(database.location);
  const { devices } = await addVendor(storage, Date.now(), { deployments: 1 });
  await storage.close();
  const server = await startServer(database);
  ends.push(server.stop);
  const { logged } = await runDaemon({ SERVICE_LOCAL_SERVER_URL: server.url });
  expect(await statusOf()).toMatchObject({ next_attempt_because: 'not_enrolled', lease: null });

  const pem = devices[0]!.key.privateKey.export({ type: 'pkcs8', format: 'pem' });
  await writePrivateFile(join(home, 'device.key'), pem);
  await logged('renewed');
  const status = await daemon(['status']);
  expect(status.stdout).toMatch(/\nlease: valid; it expires at 20\S+Z, its grace ends at 20\S+Z\n/);
  expect(status.stdout).toMatch(
    /\nnext attempt at 20\S+Z: the lease is due then\nlast success at 20/,
  );
});

describe('the network', () => {
  test('is reached with an authority of your own', async () => {
    const { seen, next } = requests();
    const options = { cert: CERTIFICATE, key: CERTIFICATE_KEY };
    const port = await listen(createTlsServer(options, failing(seen)));
    const authority = join(directory, 'authority.pem');
    writeFileSync(authority, CERTIFICATE);
    await enrol();
    await runDaemon({
      SERVICE_LOCAL_SERVER_URL: `https://localhost:${port}`,
      NODE_EXTRA_CA_CERTS: authority,
    });
    expect(await next()).toMatch(/^[A-Z]+ \/.*license/);
  });

  test('is reached through a proxy', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(failing(seen)));
    await enrol();
    await runDaemon({
      SERVICE_LOCAL_SERVER_URL: 'http://licenses.example',
      HTTP_PROXY: `http://127.0.0.1:${port}`,
    });
    expect(await next()).toMatch(/^[A-Z]+ http:\/\/licenses\.example\/.*license/);
  });
});
