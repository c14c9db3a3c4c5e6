import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { Registry, type Metric } from 'prom-client';
import { expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { createMetrics } from '../../src/server/metrics.ts';
import { createRunnerMetrics } from '../../src/trading/host/pod/runner-metrics.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples/monitoring');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly action: string };
}

const { groups } = parse(readFileSync(join(EXAMPLES, 'alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);

const dashboard = JSON.parse(readFileSync(join(EXAMPLES, 'dashboard.json'), 'utf8')) as {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number };
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
};
const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);

/** Labels that Prometheus adds, and that of the buckets of a histogram. */
const COMMON = ['job', 'instance', 'le'];

/** Labels by name of the metric, with the names of the series of histograms. */
function exportedLabels(): ReadonlyMap<string, readonly string[]> {
  const registered: Metric[] = [];
  const register = vi.spyOn(Registry.prototype, 'registerMetric');
  register.mockImplementation((metric) => void registered.push(metric));
  const storage = { check: async () => {}, connections: () => undefined };
  createMetrics({ storage, clock: Date.now } as never).process.close();
  createRunnerMetrics(() => ({ bar: undefined, report: undefined, venue: undefined }));
  register.mockRestore();
  const labels = registered.flatMap((metric) => {
    const { name, labelNames } = metric as unknown as { name: string; labelNames: string[] };
    return ['', '_bucket', '_count', '_sum'].map((end) => [`${name}${end}`, labelNames] as const);
  });
  return new Map([...labels, ['up', []]]);
}

/** Faults of a PromQL expression: its syntax, and names of metrics and labels that nobody exports. */
function faultsOf(expression: string, known: ReadonlyMap<string, readonly string[]>): string[] {
  const query = expression.replaceAll('$__rate_interval', '5m');
  const faults: string[] = [];
  const names: string[] = [];
  const labels: string[] = [];
  parser.parse(query).iterate({
    enter({ type, from, to }) {
      const text = query.slice(from, to);
      if (type.isError) faults.push(`${query}: error at ${from}`);
      if (type.name === 'VectorSelector') names.push(/^\w*/.exec(text)![0]);
      if (type.name === 'LabelName') labels.push(text);
    },
  });
  faults.push(...names.filter((name) => !known.has(name)).map((name) => `no metric ${name}`));
  const own = new Set([...COMMON, ...names.flatMap((name) => known.get(name) ?? [])]);
  faults.push(...labels.filter((label) => !own.has(label)).map((label) => `${query}: ${label}`));
  if (names.length === 0) faults.push(`${query}: no metric`);
  return faults;
}

test('the example rules are valid, use metrics and labels that exist, and say what to do', () => {
  const known = exportedLabels();
  expect(known.size).toBeGreaterThan(100);
  expect(rules.flatMap(({ expr }) => faultsOf(expr, known))).toEqual([]);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const rule of rules) {
    expect(Object.keys(rule).filter((key) => key !== 'for')).toEqual([
      'alert',
      'expr',
      'labels',
      'annotations',
    ]);
    expect(rule.alert).toMatch(/^[A-Z][A-Za-z]+$/);
    expect(rule.for ?? '1m').toMatch(/^\d+[smhd]$/);
    expect(['warning', 'critical']).toContain(rule.labels.severity);
    expect(rule.annotations).toEqual({
      summary: expect.stringMatching(/\.$/),
      action: expect.stringMatching(/\.$/),
    });
    // A label in the summary is one by which the expression groups, or that its series have.
    for (const [, label] of rule.annotations.summary.matchAll(/\$labels\.(\w+)/g)) {
      expect(rule.expr).toMatch(new RegExp(`\\b${label!}\\b|^up`));
    }
  }
});

test('the example dashboard shows metrics that exist in panels that do not overlap', () => {
  const known = exportedLabels();
  expect(targets.length).toBeGreaterThan(20);
  expect(targets.flatMap(({ expr }) => faultsOf(expr, known))).toEqual([]);
  const ids = dashboard.panels.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const places = dashboard.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(places.length);
  expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
});

test('a wrong name of a metric or label, and a wrong expression, are found', () => {
  const known = exportedLabels();
  expect(faultsOf('service_local_hlats > 0', known)).toEqual(['no metric service_local_hlats']);
  expect(faultsOf('sum by (kind) (service_local_halts)', known)).toHaveLength(1);
  expect(faultsOf('sum(service_local_halts', known)).toHaveLength(1);
});
