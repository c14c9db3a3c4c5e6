import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeAtomically } from '../src/atomic-file.ts';

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-atomic-'));
  file = join(directory, 'file');
});
afterEach(() => rmSync(directory, { recursive: true }));

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('a file that is written atomically', () => {
  it('holds all parts, in place of what was there', () => {
    writeFileSync(file, 'a longer text from before');
    writeAtomically(file, ['one ', encode('two'), ' three']);
    expect(readFileSync(file, 'utf8')).toBe('one two three');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('is as before when a part fails', () => {
    writeFileSync(file, 'before');
    const parts = function* () {
      yield 'half';
      throw new Error('no more');
    };
    expect(() => writeAtomically(file, parts())).toThrow('no more');
    expect(readFileSync(file, 'utf8')).toBe('before');
    expect(readdirSync(directory)).toEqual(['file']);
  });

  it('is written beside its place under another name each time', () => {
    const names = [1, 2].map(() => {
      let during: string[] = [];
      const parts = function* () {
        during = readdirSync(directory);
        yield '';
      };
      writeAtomically(file, parts());
      rmSync(file);
      return during;
    });
    expect(names.flat()).toHaveLength(2);
    expect(new Set(names.flat()).size).toBe(2);
    for (const name of names.flat()) expect(name).toMatch(/^file\.[0-9a-f]{16}\.tmp$/);
  });
});
