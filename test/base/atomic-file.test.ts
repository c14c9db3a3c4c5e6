import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isTemporary, removeAbandoned, writeAtomically } from '../../src/base/atomic-file.ts';

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-atomic-'));
  file = join(directory, 'file');
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Returns the name of the temporary file. */
async function temporaryNameOf(path: string): Promise<string> {
  const names: string[] = [];
  const parts = function* () {
    names.push(...readdirSync(directory));
    yield '';
  };
  await writeAtomically(path, parts());
  rmSync(path);
  return names[0]!;
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('writeAtomically', () => {
  it('replaces the old content by all parts', async () => {
    writeFileSync(file, 'a longer text from before');
    await writeAtomically(file, ['one ', encode('two'), ' three']);
    expect(readFileSync(file, 'utf8')).toBe('one two three');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('gives the temporary file its permissions before the first byte is written', async () => {
    const modes: number[] = [];
    const modeOf = (name: string): number => statSync(join(directory, name)).mode & 0o777;
    const parts = function* () {
      modes.push(...readdirSync(directory).map(modeOf));
      yield 'secret';
    };
    await writeAtomically(file, parts(), { mode: 0o600 });
    expect([...modes, modeOf('file')]).toEqual([0o600, 0o600]);
  });

  it('keeps the old content, and no temporary file, when a part fails', async () => {
    writeFileSync(file, 'before');
    const parts = function* () {
      yield 'half';
      throw new Error('no more');
    };
    await expect(writeAtomically(file, parts())).rejects.toThrow('no more');
    expect(readFileSync(file, 'utf8')).toBe('before');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('does not replace an existing file with the option exclusive, and leaves no temporary file', async () => {
    await writeAtomically(file, ['first'], { exclusive: true });
    const second = writeAtomically(file, ['second'], { exclusive: true });
    await expect(second).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readFileSync(file, 'utf8')).toBe('first');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('lets temporary files be removed once their process is dead, but never while it runs', async () => {
    const mine = await temporaryNameOf(file);
    const [, pid, start, where, random] = /^file\.(\d+)-(\d+)-(\w{8})\.(\w{16})\.tmp$/.exec(mine)!;
    const { pid: dead } = spawnSync(process.execPath, ['--version']);
    const names = {
      alive: mine,
      reusedPid: `file.${pid}-${Number(start) - 1}-${where}.${random}.tmp`,
      dead: `file.${dead}-${start}-${where}.${random}.tmp`,
      // From a process in another container, where the pid means something else.
      elsewhere: `file.${pid}-${Number(start) - 1}-00000000.${random}.tmp`,
      elsewhereOld: `file.1-7-00000000.${random}.tmp`,
      unnamed: 'file.0123456789abcdef.tmp',
      unnamedOld: 'file.fedcba9876543210.tmp',
      foreign: 'other.tmp',
    };
    const old = new Set<string>([mine, names.elsewhereOld, names.unnamedOld, names.foreign]);
    for (const name of ['file', ...Object.values(names)]) {
      writeFileSync(join(directory, name), 'half');
      const at = new Date(Date.now() - (old.has(name) ? 86_401_000 : 86_300_000));
      utimesSync(join(directory, name), at, at);
    }
    await removeAbandoned(directory);
    const left = ['file', mine, names.elsewhere, names.unnamed, names.foreign];
    expect(readdirSync(directory).sort()).toEqual(left.sort());
    await removeAbandoned(directory, { unknownAfterMs: 60_000 });
    expect(readdirSync(directory).sort()).toEqual(['file', mine, names.foreign].sort());
  });

  it.runIf(process.platform === 'linux')(
    'removes files of a killed process whose parent has not read its exit code',
    async () => {
      const mine = await temporaryNameOf(file);
      // After `exec`, the parent never waits for its child.
      const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60']);
      try {
        const [pid] = (await once(parent.stdout, 'data')) as [Buffer];
        // Until then, the shell could read the exit code of its child.
        await vi.waitFor(() =>
          expect(readFileSync(`/proc/${parent.pid}/comm`, 'utf8')).toBe('sleep\n'),
        );
        const statOf = (): string[] =>
          readFileSync(`/proc/${Number(pid)}/stat`, 'utf8')
            .split(') ')[1]!
            .split(' ');
        process.kill(Number(pid), 'SIGKILL');
        await vi.waitFor(() => expect(statOf()[0]).toBe('Z'));
        const name = mine.replace(/\d+-\d+/, `${Number(pid)}-${statOf()[19]}`);
        writeFileSync(join(directory, name), 'half');
        await removeAbandoned(directory);
        expect(readdirSync(directory)).not.toContain(name);
      } finally {
        parent.kill('SIGKILL');
      }
    },
  );

  it('removes temporary files of dead processes for the same path, unless the option keeps them', async () => {
    const mine = await temporaryNameOf(file);
    const dead = mine.replace(/-\d+-/, '-1-');
    const other = dead.replace('file', 'other');
    for (const name of [dead, other]) writeFileSync(join(directory, name), 'half');
    await writeAtomically(file, ['whole'], { keepAbandoned: true });
    expect(readdirSync(directory).sort()).toEqual(['file', dead, other].sort());
    await writeAtomically(file, ['whole']);
    expect(readdirSync(directory).sort()).toEqual(['file', other].sort());
  });

  it('uses another temporary name each time', async () => {
    const names = [await temporaryNameOf(file), await temporaryNameOf(file)];
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(isTemporary(name)).toBe(true);
  });
});
