/**
 * `npm run bench [-- --json] [-- ROW …]`: each figure is a ratio to a floor measured in the same run,
 * because machines differ and are shared.
 */
import { parseArgs } from 'node:util';
import { figureOf, tableOf } from './figure.ts';
import { measureIn } from './processes.ts';
import { ROWS } from './rows.ts';

const { values, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const names = positionals.length > 0 ? positionals : Object.keys(ROWS);
const unknown = names.filter((name) => !(name in ROWS));
if (unknown.length > 0) {
  throw new Error(`unknown rows: ${unknown.join(', ')}; rows: ${Object.keys(ROWS).join(', ')}`);
}
const figures = names.map((name) => {
  console.error(`measuring ${name}`);
  return figureOf(name, ROWS[name]!, measureIn(...ROWS[name]!.script));
});
if (values.json) {
  console.log(JSON.stringify({ schema: 'service-local/bench/v2', figures }, undefined, 2));
} else {
  process.stdout.write(await tableOf(figures));
}
