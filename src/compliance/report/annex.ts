/** Annex I: nature, scale and complexity of the business, as far as the records show them. */
import { formatCountOf } from '../../base/format.ts';
import { ARTICLES } from '../articles.ts';
import { countOrderEvents } from './event-counts.ts';
import { draft, figure, human } from './report-fields.ts';
import type { Records } from './records.ts';
import { listPlaces, listPositions } from './traded-deployments.ts';
import type { Draft, Figure, Report } from './validation-report.ts';
import { getStrategyName } from './version-changes.ts';

export function buildAnnexI(records: Records): Report['annex_i'] {
  const known = collectFacts(records);
  const listCriteria = (number: 1 | 2 | 3) =>
    ARTICLES.filter(({ ref }) => ref.startsWith(`I(${number})`)).map(({ ref, requirement }) => {
      const fact = known[ref];
      return {
        id: ref.at(-2)!,
        ref,
        requirement,
        fact: fact?.marker === 'A' ? fact : null,
        draft: fact?.marker === 'M' ? fact : null,
        assessment: human(),
      };
    });
  return { nature: listCriteria(1), scale: listCriteria(2), complexity: listCriteria(3) };
}

/** Facts and drafts by citation; people assess the other criteria without them. */
function collectFacts(records: Records): Readonly<Record<string, Figure | Draft>> {
  const { bot, params, document, deployments, counts, environments } = records;
  const { bot_id } = bot;
  const { spec } = document;
  const symbols = spec.universe?.symbols ?? [];
  const timeframe = spec.data?.timeframe ?? 'unknown';
  const strategy = getStrategyName(spec) ?? 'unknown';
  const ofBot = (value: unknown) => figure('bot.current', { bot_id }, value);
  const ofDeployments = (value: unknown) => figure('bot.deployments', params.asked, value);
  const clusters = listPlaces(deployments, 'cluster');
  const venues = listPlaces(deployments, 'exchange');
  const targets = [...Map.groupBy(deployments, ({ target }) => target)];
  const traded = {
    venues,
    deployments: targets.map(([target, own]) => ({ target, deployments: own.length })),
  };
  return {
    'I(1)(c)': draft(
      'Fully automated: the bot decides and its engine submits orders without human intervention.',
    ),
    'I(1)(d)': ofBot({ currency: spec.universe?.currency ?? null, symbols }),
    'I(1)(e)': draft(
      `The strategy ${strategy} makes decisions on ${timeframe} bars of ${formatCountOf(symbols.length, 'instrument')}. Describe its risks.`,
    ),
    'I(1)(g)': ofDeployments(traded),
    'I(1)(h)': ofDeployments({ clusters, venues }),
    'I(1)(i)': draft('List the exchange libraries and the data sources that the spec names.'),
    'I(2)(a)': figure('bots.list', params.at, records.fleet),
    'I(2)(b)': ofBot({ instruments: symbols.length }),
    'I(2)(c)': ofBot({ bot_id, strategy }),
    'I(2)(d)': figure('log.counts', params.log, countOrderEvents(counts, environments)),
    'I(2)(e)': figure('bot.positions', params.asked, listPositions(deployments)),
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
