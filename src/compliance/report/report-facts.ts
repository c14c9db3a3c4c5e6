import type { getBot } from '../../fleet/registry/bots.ts';
import { formatCountOf } from '../../base/format.ts';
import { draftStrategy, type AnnexFacts } from './annex.ts';
import { draft, figure, human } from './report-fields.ts';
import type { Incident, Report, VersionChange } from './payload.ts';
import { formatInstant } from './period.ts';
import {
  cutList,
  type Deployment,
  type Document,
  type FailedTask,
  type Version,
} from './records.ts';

/** Exchanges on which the bot traded or whose data it used. */
export function listVenues(deployments: readonly Deployment[]): string[] {
  return [...new Set(deployments.flatMap(({ exchange }) => exchange ?? []))].toSorted();
}

export function collectAnnexFacts(
  bot_id: string,
  { spec }: Document,
  asked: { readonly bot_id: string; readonly from: string; readonly to: string },
  {
    deployments,
    venues,
    messages,
    fleet,
    log,
  }: {
    readonly deployments: readonly Deployment[];
    readonly venues: readonly string[];
    readonly messages: unknown;
    readonly fleet: Report['scope']['fleet'];
    readonly log: Readonly<Record<string, unknown>>;
  },
): AnnexFacts {
  const symbols = spec.universe?.symbols ?? [];
  const timeframe = spec.data?.timeframe ?? 'unknown';
  const strategy = spec.strategy?.name ?? spec.strategy?.module ?? 'unknown';
  const ofBot = (value: unknown) => figure('bot.current', { bot_id }, value);
  const ofDeployments = (value: unknown) => figure('bot.deployments', asked, value);
  const targets = [...Map.groupBy(deployments, ({ target }) => target)].map(([target, all]) => ({
    target,
    deployments: all.length,
  }));
  const clusters = [...new Set(deployments.flatMap(({ cluster }) => cluster ?? []))].toSorted();
  const traded = { venues, deployments: targets };
  return {
    'I(1)(c)': draft(
      'Fully automated: the bot decides and its engine submits orders without human intervention.',
    ),
    'I(1)(d)': ofBot({ currency: spec.universe?.currency ?? null, symbols }),
    'I(1)(e)': draftStrategy(strategy, timeframe, symbols.length),
    'I(1)(g)': ofDeployments(traded),
    'I(1)(h)': ofDeployments({ clusters, venues }),
    'I(1)(i)': draft('List the exchange libraries and the data sources that the spec names.'),
    'I(2)(a)': fleet,
    'I(2)(b)': ofBot({ instruments: symbols.length }),
    'I(2)(c)': ofBot({ bot_id, strategy }),
    'I(2)(d)': figure('log.counts', log, messages),
    'I(2)(e)': figure('bot.positions', asked, listPositions(deployments)),
    'I(2)(f)': ofDeployments(traded),
    'I(3)(a)': ofBot({ strategy, instruments: symbols.length, venues: venues.length }),
    'I(3)(b)': ofBot({
      inputs: spec.data?.source ?? spec.data?.sources ?? null,
      params: spec.strategy?.params ?? {},
      models: spec.ml_models?.length ?? 0,
    }),
    'I(3)(c)': draft(
      'All bots use one engine, of the version named above, and are controlled by one server.',
    ),
    'I(3)(e)': draft(venues.length === 0 ? null : `Connected to ${venues.join(', ')}.`),
    'I(3)(i)': ofBot({ decides_once_each: timeframe }),
  };
}

function listPositions(deployments: readonly Deployment[]) {
  const sessions = deployments.flatMap(({ task_id, target, state }) => {
    const known = state as {
      readonly time?: string | null;
      readonly equity?: number;
      readonly positions?: Readonly<Record<string, number>>;
    } | null;
    if (known?.positions === undefined) return [];
    const { time = null, equity = null, positions } = known;
    return [{ run: task_id, target, time, equity, positions }];
  });
  return cutList(sessions);
}

export function buildInventory(
  { bot_id, slug, name, status }: Awaited<ReturnType<typeof getBot>>,
  current: Version | undefined,
  { metadata, spec }: Document,
  venues: readonly string[],
) {
  return {
    algo_id: bot_id,
    slug,
    name,
    status,
    version: current?.version ?? null,
    code_hash: current?.hash ?? null,
    bundle_hash: current?.bundle_hash ?? null,
    overview: metadata?.description ?? null,
    owner: metadata?.owner ?? null,
    strategy: spec.strategy?.name ?? spec.strategy?.module ?? null,
    instruments: spec.universe?.symbols ?? [],
    venues,
    limits_art8: spec.risk ?? null,
    model_ids: (spec.ml_models ?? []).map((model) => `${model.name} ${model.digest}`),
  };
}

/** Drafts the list of operators from the authors of versions; null without versions. */
export function draftOperators(versions: readonly Version[]): string | null {
  const names = new Set(
    versions.map(({ created_by, created_by_name }) => created_by_name ?? created_by),
  );
  return names.size === 0 ? null : `Authors of its versions: ${[...names].join(', ')}.`;
}

export function describeAiUse({ spec }: Document): string {
  const models = spec.ml_models?.length ?? 0;
  const agents = spec.agents?.length ?? 0;
  if (models + agents === 0) return 'The spec names neither models nor agents.';
  return `The spec names ${formatCountOf(models, 'model')} and ${formatCountOf(agents, 'agent')}.`;
}

/** Returns an id such as `v3`; a bare number could be mistaken for a list index. */
export function toChangeId({ version }: Version): { readonly id: string } {
  return { id: `v${version}` };
}

/** JSON pointers to the parts of a spec that decide how a bot trades and within which limits. */
const MATERIAL = /^\/spec\/(strategy|risk|universe|data|engine|ml_models|agents|deployment)(\/|$)/;

/** Records the four facts that Article 5(7) requires of a version; only people know the approver. */
export function describeChange(bot_id: string, version: Version): VersionChange {
  const { changes, isCodeChanged, created_at, created_by, created_by_name, hash, bundle_hash } =
    version;
  const places = changes.map(({ pointer }) => pointer).filter((pointer) => MATERIAL.test(pointer));
  const what = [...places, ...(isCodeChanged ? ['the code of the strategy'] : [])];
  return {
    ...toChangeId(version),
    facts: figure(
      'bot.versions',
      { bot_id, version: version.version },
      {
        when: formatInstant(created_at),
        made_by: created_by_name ?? created_by,
        hash,
        bundle_hash,
        is_first: version.version === 1,
        is_code_changed: isCodeChanged,
        nature: cutList(changes),
      },
    ),
    approved_by: human(),
    material: draft(
      version.version === 1
        ? 'This is the first version; review all of it.'
        : what.length === 0
          ? 'This version changes nothing that decides how the bot trades.'
          : `Probably: this version changes ${what.slice(0, 10).join(', ')}.`,
    ),
    review_11_ref: human(),
    notified: human(),
  };
}

export function listLimitChanges(versions: readonly Version[]) {
  return cutList(
    versions.flatMap(({ version, created_at, created_by, created_by_name, changes }) =>
      changes
        .filter(({ pointer }) => pointer === '/spec/risk' || pointer.startsWith('/spec/risk/'))
        .map((change) => ({
          when: formatInstant(created_at),
          by: created_by_name ?? created_by,
          version,
          ...change,
        })),
    ),
  );
}

/** Describes a failed run as a candidate: a person decides whether it was an incident. */
export function describeIncident(task: FailedTask): Incident {
  return {
    id: task.task_id,
    facts: figure('tasks.failed', { task_id: task.task_id }, task),
    impact: human(),
    root_cause: draft(task.detail === null ? null : `The run failed: ${task.detail}`),
    remedy: human(),
    closed: human(),
  };
}
