import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { appendLine } from '../../daemon/log-file.ts';
import { readLog, readLogSince } from '../../src/cli/daemon-log.ts';

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'service-local-log-'))));
afterEach(() => rmSync(directory, { recursive: true }));

const line = (n: number, more = 0): string =>
  JSON.stringify({
    time: '2026-01-02T03:04:05.678Z',
    level: 'info',
    msg: String(n),
    more: 'x'.repeat(more),
  });

it('the log file keeps the last two megabytes, and a reader that follows the log misses no line', async () => {
  const files = daemonFiles(directory);
  let { end } = await readLog(files);
  const read: string[] = [];
  for (let i = 0; i < 50; i++) {
    expect(appendLine(files, line(i, 100_000))).toBeUndefined();
    const part = await readLogSince(files, end);
    ({ end } = part);
    read.push(...part.entries.map(({ msg }) => msg));
  }
  expect(read).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
  for (const file of [files.log, files.olderLog]) {
    expect(statSync(file).size).toBeLessThanOrEqual(1024 * 1024);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  }
  const { entries } = await readLog(files);
  expect(entries.map(({ msg }) => msg)).toEqual(read.slice(-entries.length));
  expect(entries.length).toBeGreaterThan(10);
});

it('the log file returns why a line could not be written, and writes the lines after it', () => {
  const files = daemonFiles(directory);
  mkdirSync(files.log);
  expect(appendLine(files, line(1))).toContain('EISDIR');
  rmSync(files.log, { recursive: true });
  symlinkSync(join(directory, 'elsewhere'), files.log);
  expect(appendLine(files, line(2))).toContain('ELOOP');
  rmSync(files.log);
  expect(appendLine(files, line(3))).toBeUndefined();
  expect(readFileSync(files.log, 'utf8')).toBe(`${line(3)}\n`);
});

it('the log file shows no truncated line and no line of another user', async () => {
  const files = daemonFiles(directory);
  appendLine(files, line(1));
  appendLine(files, line(2).slice(0, 20));
  for (const other of ['null', '7', '{}', '{"time":1}']) appendLine(files, other);
  appendLine(files, line(3));
  const { entries } = await readLog(files);
  expect(entries.map(({ msg }) => msg)).toEqual(['1', '3']);
});
