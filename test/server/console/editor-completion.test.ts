import { expect, test } from 'vitest';
import { botJsonSchema } from '../../../src/bots/json-schema.ts';
import { optionsAt } from '../../../src/server/console/editor/completion.ts';
import type { Schema } from '../../../src/server/console/editor/schema.ts';
import { placeAt } from '../../../src/server/console/editor/yaml-place.ts';

const schema = botJsonSchema() as Schema;

/** Labels that are offered at `|`. */
function offered(marked: string): readonly string[] {
  const at = marked.indexOf('|');
  const text = marked.replace('|', '');
  const datasets = ['SPX'];
  return optionsAt(schema, text, { place: placeAt(text, at), datasets }).map(({ label }) => label);
}

test.each([
  ['the keys of the root', 'api|', ['$schema', 'apiVersion', 'kind', 'metadata', 'spec']],
  [
    'keys that are not used',
    'spec:\n  universe:\n    symbols: [SPX]\n    |',
    ['currency', 'calendar'],
  ],
  ['keys in braces', 'spec:\n  universe: { symbols: [A, "B"], |', ['currency', 'calendar']],
  ['values of an enumeration', 'spec:\n  kind: |', ['trading', 'research']],
  ['values in braces', 'spec: { kind: |', ['trading', 'research']],
  [
    'parameters of the named strategy',
    'spec:\n  strategy:\n    name: sma_crossover\n    params:\n      |',
    ['fast', 'slow'],
  ],
  [
    'parameters, with the name below',
    'spec:\n  strategy:\n    params: { | }\n    name: rsi_reversion',
    ['period', 'lower', 'upper'],
  ],
  ['fields of items of a list', 'spec:\n  metrics:\n  - name: sharpe\n    |', ['min', 'max']],
  ['datasets of the server', 'spec:\n  data:\n    source: |', ['catalog://SPX']],
  ['nothing in an unknown map', 'nothing:\n  |', []],
])('completion offers %s', (_, text, labels) => {
  expect(offered(text)).toEqual(labels);
});
