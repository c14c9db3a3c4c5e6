import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseSpec } from '../../src/bots/parse.ts';
import { driftOf } from '../../src/backtest/lock-drift.ts';
import { lockPath, readLock, specHash, writeLock } from '../../src/bots/spec-lock.ts';
import { lockOf } from '../../src/backtest/run-lock.ts';
import { directoryWith, VALID } from './specs.ts';

const hashOf = (text: string): string => specHash(parseSpec(text, 'bot.yaml').document.value);
const digest = (letter: string): string => letter.repeat(64);

const PARTS = {
  spec: digest('a'),
  engine: '1',
  seed: 7,
  strategy: { 's.ts': digest('b'), 'lib/a.ts': digest('c') },
  data: { SPX: digest('d'), NDX: digest('e') },
};

describe('the hash of a spec', () => {
  it('is the sha256 of its canonical JSON', () => {
    // printf '{"a":[1,"é"],"b":0.001}' | sha256sum
    expect(specHash({ b: 1e-3, a: [1, 'é'] })).toBe(
      '0ce5931f79e6480bfefaa8435d700218a6c68668f6e14a4aabbccebedb774f47',
    );
  });

  it('ignores comments, layout, the order of fields and the choice of YAML or JSON', () => {
    const relaid = VALID.replace('kind: Bot\n', '').replace(
      'spec:',
      '# a bot\nkind:   "Bot"\nspec:',
    );
    expect(relaid).not.toBe(VALID);
    expect(hashOf(relaid)).toBe(hashOf(VALID));
    expect(hashOf(JSON.stringify(parseSpec(VALID, '').document.value))).toBe(hashOf(VALID));
  });

  it('is the same for a value and for an alias of the value', () => {
    const anchored = VALID.replace('name: SMA crossover', 'name: &n SMA crossover').replace(
      'desk: index',
      'desk: *n',
    );
    expect(hashOf(anchored)).toBe(hashOf(VALID.replace('desk: index', 'desk: SMA crossover')));
  });

  it('changes with any value, and with a default that is written out', () => {
    expect(hashOf(VALID.replace('fast: 10', 'fast: 11'))).not.toBe(hashOf(VALID));
    expect(hashOf(VALID.replace('"0.001"', '"0.0010"'))).not.toBe(hashOf(VALID));
    expect(hashOf(VALID.replace('rate: "0.001"', 'rate: "0.001", min: "0"'))).not.toBe(
      hashOf(VALID),
    );
  });
});

describe('a lock', () => {
  it('has a digest over all of its parts that does not depend on their order', () => {
    const { spec, ...rest } = PARTS;
    expect(lockOf({ ...rest, spec })).toEqual(lockOf(PARTS));
    const digests = [
      PARTS,
      { ...PARTS, spec: digest('0') },
      { ...PARTS, engine: '2' },
      { ...PARTS, seed: 8 },
      { ...PARTS, strategy: 'sma_crossover' },
      { ...PARTS, data: { SPX: digest('d') } },
    ].map((parts) => lockOf(parts).digest);
    expect(new Set(digests).size).toBe(6);
  });

  it('lists each part that differs from another lock', () => {
    const before = lockOf(PARTS);
    expect(driftOf(before, lockOf(PARTS))).toEqual([]);
    const after = lockOf({
      spec: digest('0'),
      engine: '2',
      seed: 8,
      strategy: { 's.ts': digest('0'), 'lib/b.ts': digest('c') },
      data: { SPX: digest('0'), NDX: digest('e') },
    });
    expect(driftOf(before, after)).toEqual([
      'the spec changed',
      'strategy file lib/a.ts: removed',
      'strategy file lib/b.ts: added',
      'strategy file s.ts: changed',
      'data of SPX: changed',
      'the engine changed from 1 to 2',
      'the seed changed from 7 to 8',
    ]);
    expect(driftOf(before, lockOf({ ...PARTS, strategy: 'sma_crossover' }))).toEqual([
      'the strategy changed from s.ts, lib/a.ts to sma_crossover',
    ]);
  });

  it('can be read back after it was written next to its spec', async () => {
    const directory = directoryWith({});
    const file = join(directory, 'my.bot.yaml');
    expect(readLock(file)).toBeUndefined();
    expect(await writeLock(file, lockOf(PARTS))).toBe(join(directory, 'my.bot.lock.json'));
    await writeLock(file, lockOf({ ...PARTS, seed: 8 }));
    expect(readLock(file)).toEqual(lockOf({ ...PARTS, seed: 8 }));
    expect(readdirSync(directory)).toEqual(['my.bot.lock.json']);
  });

  it.each([
    ['an empty file', ''],
    ['something else', '{"a": 1}'],
    ['a lock that was edited', JSON.stringify({ ...lockOf(PARTS), seed: 8 })],
  ])('is rejected if the file contains %s', (_, content) => {
    const file = join(directoryWith({}), 'bot.yaml');
    writeFileSync(lockPath(file), content);
    expect(() => readLock(file)).toThrow(expect.objectContaining({ code: 'invalid_data' }));
  });

  it('reports output_not_writable if its directory is missing', async () => {
    const file = join(directoryWith({}), 'nowhere/bot.yaml');
    await expect(writeLock(file, lockOf(PARTS))).rejects.toMatchObject({
      code: 'output_not_writable',
    });
  });
});
