import type { LimitName } from '../../base/risk-limits.ts';
import { digest, figure, reportedLimit, type Gaps } from './report-fields.ts';
import type { ReportedLimit } from './payload.ts';
import { formatInstant } from './period.ts';
import { type Document, type Version } from './records.ts';

/** The paragraphs that each limit of the spec implements. */
const IMPLEMENTED_PARAGRAPHS: Readonly<Record<string, readonly string[]>> = {
  max_order_value: ['15(1)(b)', '8(b)'],
  max_order_qty: ['15(1)(c)', '8(b)'],
  price_collar_bps: ['15(1)(a)', '8(b)'],
  max_messages_per_second: ['15(1)(d)'],
  max_position_pct: ['15(4)', '8(c)'],
  max_daily_loss_pct: ['15(4)'],
  max_drawdown_pct: ['15(4)'],
  max_instruments: ['8(a)'],
  price_collar_period: ['15(1)(a)'],
  messages_kept_for_cancels: ['15(1)(d)'],
  repeated_execution: ['15(3)'],
} satisfies Readonly<Record<Exclude<LimitName, 'permitted'>, readonly string[]>>;

/** Paragraphs that require a limit, with the text for the gap if the spec has no such limit. */
const REQUIRED_LIMITS: readonly (readonly [ref: string, what: string])[] = [
  ['8(a)', 'a limit on the number of instruments'],
  ['8(b)', 'a limit on the price, value or number of orders'],
  ['8(c)', 'a limit on positions'],
  ['8(d)', 'a limit on the number of venues'],
  ['15(1)(a)', 'a price collar'],
  ['15(1)(b)', 'a limit on the value of an order'],
  ['15(1)(c)', 'a limit on the volume of an order'],
  ['15(1)(d)', 'a limit on messages'],
  ['15(3)', 'a limit on repeated automated execution'],
  ['15(4)', 'a limit on market or credit risk'],
  ['15(5)', 'a permission to trade the instruments'],
];

/** Lists the limits of the current version, which the engine checks before every order. */
export function reportLimits(
  bot_id: string,
  versions: readonly Version[],
  gaps: Gaps,
): ReportedLimit[] {
  const current = versions.at(-1);
  const risk = (current?.document as Document | undefined)?.spec.risk ?? {};
  const served = new Set<string>();
  const controls = Object.entries(risk).map(([id, limit]): ReportedLimit => {
    const articles =
      id === 'permitted' ? listPermittedParagraphs(limit) : (IMPLEMENTED_PARAGRAPHS[id] ?? []);
    const reason = getUnlimitedReason(limit);
    if (reason === undefined) for (const ref of articles) served.add(ref);
    else gaps.add(`unlimited_${id}`, `${id} is unlimited: ${reason}`, articles);
    if (articles.length === 0 && id !== 'permitted')
      gaps.add(`unknown_${id}`, `which paragraphs the limit ${id} implements`, []);
    const facts = {
      value: reason === undefined ? limit : null,
      unlimited: reason ?? null,
      hard_or_soft: 'hard: the engine denies the order',
      ...findCalibration(versions, id),
    };
    const params = { bot_id, version: current!.version, limit: id };
    return reportedLimit(id, articles, figure('risk.controls', params, facts));
  });
  for (const [ref, what] of REQUIRED_LIMITS) {
    if (!served.has(ref)) gaps.add(`no_control_${ref}`, `the spec has no ${what.slice(2)}`, [ref]);
  }
  return controls;
}

/** An absent list permits everything, so only lists that are present implement a paragraph. */
function listPermittedParagraphs(permitted: unknown): string[] {
  const lists = Object(permitted) as Readonly<Record<string, unknown>>;
  return [
    ...(Array.isArray(lists['instruments']) ? ['8(a)', '15(5)'] : []),
    ...(Array.isArray(lists['venues']) ? ['8(d)'] : []),
  ];
}

function getUnlimitedReason(limit: unknown): string | undefined {
  if (typeof limit !== 'object' || limit === null || !('unlimited' in limit)) return undefined;
  return String(limit.unlimited);
}

/** Finds the version that set the limit to its current value. */
function findCalibration(
  versions: readonly Version[],
  id: string,
): { readonly since_version: number; readonly last_calibrated: string } {
  const values = versions.map(({ document }) =>
    digest((document as Document).spec.risk?.[id] ?? null),
  );
  const other = values.findLastIndex((value) => value !== values.at(-1));
  const { version, created_at } = versions[other + 1]!;
  return { since_version: version, last_calibrated: formatInstant(created_at) };
}
