import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { openStorage } from '../../src/storage/storage.ts';
import { startServer } from '../server/running.ts';
import { addVendor } from '../server/vendor.ts';
import { newDatabase } from '../storage/databases.ts';
import { figure, round, type Figure } from './figure.ts';

const CLI = join(import.meta.dirname, '../../dist/bin/service-local.js');
const AT_REST_MS = 1500;
const MEASURE_MS = 10_000;
const MIB = 1024 * 1024;

/** The compiled daemon after it has got a lease from a real server; Linux only. */
export async function daemon(): Promise<Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), 'service-local-bench-daemon-'));
  const undo: (() => unknown)[] = [() => rmSync(directory, { recursive: true })];
  try {
    const database = await newDatabase('sqlite');
    undo.push(database.remove);
    const storage = await openStorage(database.location);
    const { devices } = await addVendor(storage, Date.now(), { installations: 1 });
    await storage.close();
    const server = await startServer(database);
    undo.push(server.stop);

    const home = join(directory, 'home');
    mkdirSync(home, { mode: 0o700 });
    const key = devices[0]!.key.privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(home, 'device.key'), key, { mode: 0o600 });
    const env = { PATH: process.env['PATH'], HOME: directory, SERVICE_LOCAL_HOME: home };
    const cli = (...words: string[]): string =>
      execFileSync(process.execPath, [CLI, 'daemon', ...words], { env, encoding: 'utf8' });
    const { pid } = JSON.parse(cli('start', '--url', server.url, '--json')) as { pid: number };
    undo.push(() => cli('stop'));
    while (!existsSync(join(home, 'license_lease.json'))) await wait(100);
    await wait(AT_REST_MS);
    const before = usage(pid);
    await wait(MEASURE_MS);
    const { cpuMs, bytes } = usage(pid);
    const [mib, perSecond] = [bytes / MIB, (cpuMs - before.cpuMs) / (MEASURE_MS / 1000)];
    const most = { atMost: 1 };
    return [
      figure('memory of the daemon at rest', ['80 MiB', `${round(mib)} MiB`], mib / 80, most),
      figure('processor time of it', ['1 ms/s', `${round(perSecond)} ms/s`], perSecond, most),
    ];
  } finally {
    for (const one of undo.toReversed()) await one();
  }
}

/** Of a process, as proc(5) tells: resident memory, and processor time in ticks of 10 ms. */
function usage(pid: number): { readonly cpuMs: number; readonly bytes: number } {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return { cpuMs: (Number(fields[11]) + Number(fields[12])) * 10, bytes: Number(kib) * 1024 };
}
