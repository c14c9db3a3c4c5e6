/**
 * `npm run docs` writes `docs/reference/` from the code: commands, bot file, settings, API, errors,
 * checks of doctor, metrics and the library. `npm run docs -- --check` fails if a file is not current.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { apiPages } from './generator/api.ts';
import { botFilePage } from './generator/bot-file.ts';
import { commandPages } from './generator/commands.ts';
import { doctorPage } from './generator/doctor.ts';
import { errorsPage } from './generator/errors.ts';
import { libraryPages } from './generator/library.ts';
import { metricsPage } from './generator/metrics.ts';
import type { Page } from './generator/page.ts';
import { settingsPage } from './generator/settings.ts';

const DIRECTORY = join(import.meta.dirname, 'reference');
const NOTE = '<!-- Written by `npm run docs` from the code. Do not edit. -->';

const pages: Page[] = [
  ...(await commandPages()),
  botFilePage(),
  settingsPage(),
  errorsPage(),
  doctorPage(),
  await metricsPage(),
  ...(await apiPages()),
  ...libraryPages(),
];
const wanted = new Map(pages.map(({ path, text }) => [path, `${NOTE}\n\n${text}\n`]));
const present = new Map(
  readdirSync(DIRECTORY, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => [path, readFileSync(join(DIRECTORY, path), 'utf8')]),
);
const stale = [...new Set([...wanted.keys(), ...present.keys()])].filter(
  (path) => wanted.get(path) !== present.get(path),
);

if (!process.argv.includes('--check')) {
  for (const path of stale) {
    const file = join(DIRECTORY, path);
    const text = wanted.get(path);
    if (text === undefined) {
      rmSync(file);
      continue;
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  console.log(`${wanted.size} pages, ${stale.length} of them changed`);
} else if (stale.length > 0) {
  console.error(`docs/reference is not current; run \`npm run docs\`:\n${stale.join('\n')}`);
  process.exitCode = 1;
}
