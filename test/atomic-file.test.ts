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
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removeAbandoned, writeAtomically } from '../src/atomic-file.ts';

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-atomic-'));
  file = join(directory, 'file');
});
afterEach(() => rmSync(directory, { recursive: true }));

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a file that is written atomically', () => {
  it('holds all parts, in place of what was there', async () => {
    writeFileSync(file, 'a longer text from before');
    await writeAtomically(file, ['one ', encode('two'), ' three']);
    expect(readFileSync(file, 'utf8')).toBe('one two three');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('has the permissions asked for, from its first byte on', async () => {
    const modes: number[] = [];
    const modeOf = (name: string): number => statSync(join(directory, name)).mode & 0o777;
    const parts = function* () {
      modes.push(...readdirSync(directory).map(modeOf));
      yield 'secret';
    };
    await writeAtomically(file, parts(), { mode: 0o600 });
    expect([...modes, modeOf('file')]).toEqual([0o600, 0o600]);
  });

  it('is as before when a part fails', async () => {
    writeFileSync(file, 'before');
    const parts = function* () {
      yield 'half';
      throw new Error('no more');
    };
    await expect(writeAtomically(file, parts())).rejects.toThrow('no more');
    expect(readFileSync(file, 'utf8')).toBe('before');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('that is to be new leaves what is there, and nothing beside it', async () => {
    await writeAtomically(file, ['first'], { exclusive: true });
    const second = writeAtomically(file, ['second'], { exclusive: true });
    await expect(second).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readFileSync(file, 'utf8')).toBe('first');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('leaves what can be removed when its process is killed, once nobody can be writing', async () => {
    const names: string[] = [];
    const parts = function* () {
      names.push(...readdirSync(directory));
      yield '';
    };
    for (let i = 0; i < 2; i += 1) {
      await writeAtomically(file, parts());
      rmSync(file);
    }
    const [old, fresh] = names as [string, string];
    for (const name of [...names, 'file', 'other.tmp']) {
      writeFileSync(join(directory, name), 'secret');
      const at = name === fresh ? new Date() : new Date(Date.now() - 61_000);
      utimesSync(join(directory, name), at, at);
    }
    await removeAbandoned(directory);
    expect(readdirSync(directory).sort()).toEqual(['file', 'other.tmp', fresh].sort());
    expect(old).not.toBe(fresh);
  });

  it('is written beside its place under another name each time', async () => {
    const names: string[] = [];
    for (let i = 0; i < 2; i += 1) {
      const parts = function* () {
        names.push(...readdirSync(directory));
        yield '';
      };
      await writeAtomically(file, parts());
      rmSync(file);
    }
    expect(names).toHaveLength(2);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^file\.[0-9a-f]{16}\.tmp$/);
  });
});
