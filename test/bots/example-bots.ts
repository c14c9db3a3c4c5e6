import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const EXAMPLES = join(import.meta.dirname, '../../examples');

export const exampleBots: readonly string[] = readdirSync(EXAMPLES).filter(
  (name) =>
    name.endsWith('.yaml') && /^kind: Bot$/m.test(readFileSync(join(EXAMPLES, name), 'utf8')),
);
