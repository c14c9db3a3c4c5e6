import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
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
import { createServer as createSocketServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { newNote, locateProcess, readNote, writeNote } from '../../daemon/note.ts';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { holdLock } from '../../src/base/file-lock.ts';
import { writePrivateFile } from '../../src/base/private-file.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from '../client/certificate.ts';
import { inProcess } from '../cli/in-process.ts';
import { serviceLocal, type Result } from '../cli/service-local.ts';
import { serveHere } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import { newDatabase } from '../storage/databases.ts';
import { isAtLength } from '../length.ts';
import { startDaemon, type RunningDaemon } from './running-daemon.ts';
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

/** `service-local daemon …`; to start one takes a process, as that of the daemon is its like. */
const daemon = (words: readonly string[], env: Variables = {}): Promise<Result> => {
  const run = words[0] === 'start' || words[0] === 'run' ? serviceLocal : inProcess;
  return run(['daemon', ...words], { env: { SERVICE_LOCAL_HOME: home, ...env } });
};
const statusOf = async (): Promise<Record<string, unknown>> =>
  JSON.parse((await daemon(['status', '--json'])).stdout) as Record<string, unknown>;

/** `service-local daemon run`, once it has begun its work. */
async function runDaemon(env: Variables = {}): Promise<RunningDaemon> {
  const running = await startDaemon(directory, { SERVICE_LOCAL_HOME: home, ...env });
  ends.push(running.kill);
  return running;
}

/** Makes the machine a device of some server, without a lease yet. */
const enroll = (): Promise<unknown> => deviceKeyAt(join(home, 'device.key'));

/** @returns its port. */
async function listen(server: Server): Promise<number> {
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

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
  test('the daemon starts, shows its status and stops in the background', async () => {
    const started = await daemon(['start']);
    expect(started).toMatchObject({ code: 0 });
    expect(started.stderr).toMatch(
      /^This machine is not enrolled and has no lease: .*license enroll/,
    );
    const [, pid] = /^The daemon runs as process (\d+)\.\n$/.exec(started.stdout)!;
    ends.push(() => daemon(['stop']));

    const again = await daemon(['start']);
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toMatch(`The daemon is already running, as process ${pid}, and uses http`);

    const status = await daemon(['status']);
    expect(status).toMatchObject({ code: 0, stderr: '' });
    expect(status.stdout).toContain(`The daemon runs as process ${pid}, since 20`);
    expect(status.stdout).toContain('lease: none\n');

    expect(await daemon(['stop'])).toEqual({
      code: 0,
      stdout: `The daemon, process ${pid}, has stopped.\n`,
      stderr: '',
    });
    const stopped = await daemon(['status']);
    expect(stopped.code).toBe(3);
    expect(stopped.stdout).toMatch(/^No daemon runs for .*\nThe last daemon was stopped at 20/);
    const logs = await daemon(['logs', '-n', '1']);
    expect(logs.stdout).toMatch(/^20\S+Z info stopped\n$/);
    expect(await daemon(['stop', '--json'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('"stopped": false') as string,
    });
  });

  test.runIf(isAtLength)('the daemon renews the files that the environment names', async () => {
    ends.push(() => daemon(['stop']));
    const env = { SERVICE_LOCAL_HOME: home, SERVICE_LICENSE_LEASE_PATH: 'mine/lease.json' };
    await serviceLocal(['daemon', 'start'], { cwd: directory, env });
    const { stdout } = await daemon(['logs']);
    expect(stdout).toContain(`renewing ${join(directory, 'mine/lease.json')} from http`);
  });

  test.runIf(isAtLength)('`daemon start` reports why the daemon could not start', async () => {
    mkdirSync(home);
    chmodSync(home, 0o777);
    const { code, stderr } = await daemon(['start']);
    expect(code).toBe(3);
    expect(stderr).toContain(`error invalid_data: ${home} can be written to by other users`);
    expect(stderr).toContain(`chmod 700 ${home}`);
  });
});

test.runIf(isAtLength)('only one of two daemons that start at once runs', async () => {
  const [first, second] = await Promise.allSettled([runDaemon(), runDaemon()]);
  const outcomes = [first, second];
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const refused = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(String(refused?.reason)).toContain('a daemon already runs for this home');
});

test.runIf(isAtLength)('a daemon starts after another one was killed', async () => {
  const killed = await runDaemon();
  process.kill(killed.pid, 'SIGKILL');
  expect(await killed.ended).toEqual([null, 'SIGKILL']);
  const status = await daemon(['status']);
  expect(status.code).toBe(3);
  expect(status.stdout).toContain('was killed, or the machine was switched off');
  const { pid } = await runDaemon();
  expect(await statusOf()).toMatchObject({ running: true, pid, stopped_at: null });
});

describe('the identity of the daemon', () => {
  const noteFile = (): string => join(home, 'daemon.json');
  const note = (): Record<string, unknown> =>
    JSON.parse(readFileSync(noteFile(), 'utf8')) as Record<string, unknown>;

  test.runIf(isAtLength)('the note is written again after it was removed', async () => {
    const { pid, ended } = await runDaemon();
    for (const text of ['{}', 'null', 'torn']) {
      writeFileSync(join(home, 'daemon_state.json'), text);
      expect(await statusOf()).toMatchObject({ running: true, pid });
    }
    rmSync(noteFile());
    expect((await daemon(['stop'])).stdout).toBe(`The daemon, process ${pid}, has stopped.\n`);
    expect(await ended).toEqual([0, null]);
  });

  test.runIf(isAtLength)(
    'a later process with the same pid is not taken for the daemon',
    async () => {
      const bystander = spawn('sleep', ['60']);
      ends.push(() => bystander.kill('SIGKILL'));
      const lock = await holdLock(join(home, 'daemon.lock'), 0);
      ends.push(() => lock.release());
      const { process: mark, ...others } = newNote('http://127.0.0.1');
      const foreign = { ...others, pid: bystander.pid!, process: mark };
      await writeNote(noteFile(), foreign);
      expect(locateProcess(foreign)).toBe(mark === null ? 'here' : 'gone');
      expect((await daemon(['status'])).stdout).toContain('but its process ID is unknown');

      const elsewhere = mark && { ...mark, pid_namespace: 'pid:[1]' };
      await writeNote(noteFile(), { ...foreign, process: elsewhere });
      const { code, stderr } = await daemon(['stop']);
      expect(code).not.toBe(0);
      expect(stderr).toContain('in another container or on another machine');
      expect(bystander.signalCode).toBeNull();
    },
  );

  test.runIf(process.platform === 'linux')(
    'a daemon that has exited is gone before its parent reads its exit status',
    async () => {
      // The shell becomes `sleep`, which never reads the exit status of the child.
      const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60']);
      ends.push(() => parent.kill('SIGKILL'));
      const [pid] = (await once(parent.stdout, 'data')).map(Number);
      await vi.waitFor(() =>
        expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'),
      );
      const fields = (): string[] =>
        readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
      const own = newNote('http://127.0.0.1');
      const child = { ...own, pid: pid!, process: { ...own.process!, started: fields()[19]! } };
      expect(locateProcess(child)).toBe('here');
      process.kill(pid!, 'SIGKILL');
      await vi.waitFor(() => expect(fields()[0]).toBe('Z'));
      expect(locateProcess(child)).toBe('gone');
    },
  );

  test.runIf(isAtLength)(
    'the note is written at start and end while another process holds the license lock',
    async () => {
      const lock = await holdLock(join(home, 'license.lock'), 0);
      ends.push(() => lock.release());
      const { pid, ended } = await runDaemon();
      expect(note()).toMatchObject({ pid, stopped_at: null });
      process.kill(pid, 'SIGTERM');
      await ended;
      expect(note()['stopped_at']).toEqual(expect.any(String));
    },
  );
});

test('a note without a home, of an earlier version, is read, and one with a damaged home is not', async () => {
  mkdirSync(home, { mode: 0o700 });
  const path = join(home, 'daemon.json');
  const note = newNote('http://127.0.0.1');
  await writePrivateFile(path, JSON.stringify(note));
  expect(await readNote(path)).toEqual(note);
  await writePrivateFile(path, JSON.stringify({ ...note, home: {} }));
  expect(await readNote(path)).toBeUndefined();
});

test.runIf(isAtLength)(
  'a copied home neither shows nor stops the daemon of the original',
  async () => {
    const { pid } = await runDaemon();
    const copy = { SERVICE_LOCAL_HOME: join(directory, 'copy') };
    cpSync(home, copy.SERVICE_LOCAL_HOME, { recursive: true });
    const status = await daemon(['status'], copy);
    expect(status).toMatchObject({
      code: 3,
      stdout: expect.stringContaining('No daemon runs for'),
    });
    expect(status.stdout).not.toContain('killed');
    const license = await inProcess(['license', 'status', '--json'], { env: copy });
    expect(JSON.parse(license.stdout)).toMatchObject({ renewal: { daemon: false } });
    expect((await daemon(['stop'], copy)).stdout).toContain('No daemon runs for');
    // While a daemon that has not written its note yet holds the lock of the copy.
    const lock = await holdLock(join(copy.SERVICE_LOCAL_HOME, 'daemon.lock'), 0);
    setTimeout(() => lock.release(), 200);
    expect((await daemon(['stop'], copy)).stdout).toContain('No daemon runs for');
    expect(await statusOf()).toMatchObject({ running: true, pid });
  },
);

test.runIf(isAtLength)('a daemon ends when its lock file was replaced', async () => {
  const { logged, ended } = await runDaemon();
  rmSync(join(home, 'daemon.lock'));
  const next = await runDaemon();
  expect(await logged('was removed or replaced')).toContain('the daemon ends');
  expect((await ended)[0]).toBe(1);
  expect(await statusOf()).toMatchObject({ running: true, pid: next.pid, stopped_at: null });
});

test.runIf(isAtLength)(
  'a daemon whose lock file was removed is still found and stopped',
  async () => {
    const { pid, ended } = await runDaemon();
    process.kill(pid, 'SIGSTOP');
    rmSync(join(home, 'daemon.lock'));
    expect(await statusOf()).toMatchObject({ running: true, pid });
    const stopping = daemon(['stop']);
    process.kill(pid, 'SIGCONT');
    expect(await stopping).toMatchObject({ code: 0 });
    await ended;
    expect(await statusOf()).toMatchObject({ running: false });
  },
);

test.runIf(isAtLength)("the daemon's files are private and not links", async () => {
  const { pid, ended } = await runDaemon();
  expect(statSync(home).mode & 0o777).toBe(0o700);
  for (const name of ['daemon.lock', 'daemon.json', 'daemon.log']) {
    expect(statSync(join(home, name)).mode & 0o777).toBe(0o600);
  }
  process.kill(pid, 'SIGTERM');
  await ended;
  const elsewhere = join(directory, 'elsewhere');
  for (const name of ['daemon.log', 'daemon.json']) {
    rmSync(join(home, name));
    symlinkSync(elsewhere, join(home, name));
  }
  const { logged } = await runDaemon();
  expect(await logged('the log file could not be written')).toContain('daemon.log');
  expect(lstatSync(join(home, 'daemon.json')).isFile()).toBe(true);
  expect(existsSync(elsewhere)).toBe(false);
});

describe('a service manager', () => {
  test.runIf(isAtLength)(
    'a service manager is notified of start, status, watchdog and end',
    async () => {
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
    },
  );
});

describe('signals', () => {
  test.runIf(isAtLength)('SIGTERM ends the daemon during a request', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(seen));
    await enroll();
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

  test.runIf(isAtLength)('SIGTERM ends the daemon while it connects', async () => {
    const silent = createSocketServer((socket) => void socket.resume().on('error', () => {}));
    ends.push(() => silent.close());
    silent.on('connection', (socket) => ends.push(() => socket.destroy()));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    await enroll();
    const reached = once(silent, 'connection');
    const { pid, ended } = await runDaemon({
      SERVICE_LOCAL_SERVER_URL: `https://127.0.0.1:${port}`,
    });
    await reached;
    const asked = performance.now();
    process.kill(pid, 'SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(performance.now() - asked).toBeLessThan(5000);
  });

  test.runIf(isAtLength)('SIGHUP triggers a retry at once', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(failing(seen)));
    await enroll();
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

test.runIf(isAtLength)(
  'a machine that is enrolled while the daemon runs gets its lease at once',
  async () => {
    const database = await newDatabase('sqlite');
    ends.push(database.remove);
    const storage = await openStorage(database.location);
    const { devices } = await addVendor(storage, Date.now(), { installations: 1 });
    await storage.close();
    const server = await serveHere(database);
    ends.push(server.stop);
    const { logged } = await runDaemon({ SERVICE_LOCAL_SERVER_URL: server.url });
    expect(await logged('this machine is not enrolled')).toContain('no lease is requested');
    // It is written after it was logged.
    await vi.waitFor(async () =>
      expect(await statusOf()).toMatchObject({ next_attempt_because: 'not_enrolled', lease: null }),
    );

    const pem = devices[0]!.key.privateKey.export({ type: 'pkcs8', format: 'pem' });
    await writePrivateFile(join(home, 'device.key'), pem);
    await logged('renewed');
    const status = await daemon(['status']);
    expect(status.stdout).toMatch(
      /\nlease: valid; it expires at 20\S+Z, its grace ends at 20\S+Z\n/,
    );
    expect(status.stdout).toMatch(
      /\nnext attempt at 20\S+Z: the lease is due at that time\nlast success at 20/,
    );
  },
);

describe('the network', () => {
  test.runIf(isAtLength)(
    'the daemon accepts a certificate authority from NODE_EXTRA_CA_CERTS',
    async () => {
      const { seen, next } = requests();
      const options = { cert: CERTIFICATE, key: CERTIFICATE_KEY };
      const port = await listen(createTlsServer(options, failing(seen)));
      const authority = join(directory, 'authority.pem');
      writeFileSync(authority, CERTIFICATE);
      await enroll();
      await runDaemon({
        SERVICE_LOCAL_SERVER_URL: `https://localhost:${port}`,
        NODE_EXTRA_CA_CERTS: authority,
      });
      expect(await next()).toMatch(/^[A-Z]+ \/.*license/);
    },
  );

  test.runIf(isAtLength)('the daemon reaches the server through a proxy', async () => {
    const { seen, next } = requests();
    const port = await listen(createServer(failing(seen)));
    await enroll();
    await runDaemon({
      SERVICE_LOCAL_SERVER_URL: 'http://licenses.example',
      SERVICE_LOCAL_SERVER_INSECURE: 'true',
      HTTP_PROXY: `http://127.0.0.1:${port}`,
    });
    expect(await next()).toMatch(/^[A-Z]+ http:\/\/licenses\.example\/.*license/);
  });
});
