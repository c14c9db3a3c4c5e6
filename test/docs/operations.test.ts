import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/operations.md'), 'utf8');
const [parts] = page.split('\n## Procedures\n') as [string];
const entries = parts.split('\n### ').slice(1);

test('each part that exists once has an effect, a time, an action and an existing test', () => {
  expect(entries.length).toBeGreaterThanOrEqual(15);
  for (const entry of entries) {
    const [name] = entry.split('\n');
    const labels = [...entry.matchAll(/^- \*\*(\w+)\.\*\* /gm)].map(([, label]) => label);
    expect(labels, name).toEqual(['Effect', 'Noticed', 'Do', 'Test']);
    const [, file, title] = /`(test\/\S+)`: "(.+)"$/m.exec(entry)!;
    expect(readFileSync(join(root, file!), 'utf8'), name).toContain(title);
  }
});

test('after a restore, the archived events are verified', () => {
  const restore = page.split('### Restore to a point in time')[1]!.split('###')[0]!;
  expect(restore).toContain('service-local events verify');
});

test('each rule that the page names exists', () => {
  const rules = readFileSync(join(root, 'examples/monitoring/alerts.yaml'), 'utf8');
  const named = [...page.matchAll(/rules? `(\w+)`(?: and `(\w+)`)?/g)].flatMap(([, ...names]) =>
    names.filter((name) => name !== undefined),
  );
  expect(named.length).toBeGreaterThan(4);
  for (const name of named) expect(rules).toContain(`alert: ${name}\n`);
});
