import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkBot } from '../../src/bots/load.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml'));

describe('the examples', () => {
  it('are there', () => {
    expect(files).toContain('sma-crossover.yaml');
    expect(files).toContain('custom-strategy.yaml');
  });

  it.each(files)('%s has no problems, and is called as its file is', (name) => {
    const { bot, problems } = checkBot(join(EXAMPLES, name));
    expect(problems).toEqual([]);
    expect(`${bot?.spec.metadata.slug}.yaml`).toBe(name);
  });
});
