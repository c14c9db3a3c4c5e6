import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

/**
 * Writes a bot whose own strategy has two files, and fails for the value 7 of its parameter `day`.
 * @returns the path of the bot
 */
export async function writeOwnBot(directory: string): Promise<string> {
  await writeFile(
    join(directory, 'own.ts'),
    `import { defineStrategy, integer } from 'service-local/strategy';
import { isDay } from './days.ts';
export default defineStrategy({
  name: 'one_day',
  description: 'made by a test',
  params: { day: integer({ default: 1, min: 1 }) },
  create({ instruments: [instrument], broker, params }) {
    return {
      onBar() {
        if (params.day === 7) throw new Error('no such day');
        if (isDay(instrument.count, params.day)) broker.target(instrument, 1);
      },
    };
  },
});
`,
  );
  await writeFile(
    join(directory, 'days.ts'),
    'export const isDay = (count: number, day: number): boolean => count === day;\n',
  );
  const text = await readFile(join(EXAMPLES, 'sma-crossover.yaml'), 'utf8');
  const bot = join(directory, 'own.yaml');
  const spec = text
    .replaceAll('./data/', `${EXAMPLES}/data/`)
    .replace(/strategy: .*/, 'strategy: {module: ./own.ts, params: {}}');
  await writeFile(bot, spec);
  return bot;
}
