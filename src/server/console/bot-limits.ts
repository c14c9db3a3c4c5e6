import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { listThresholds } from '../../api/risk.ts';
import { formatNumber, formatPercent, formatQuantity, NO_VALUE } from '../../base/format.ts';
import { RISK_LIMITS, type LimitName } from '../../base/risk-limits.ts';
import { subjectsOf } from '../../fleet/thresholds/subjects.ts';
import { resolveShares } from '../../fleet/thresholds/thresholds.ts';
import { describeLimits, type BotLimits, type LimitUse } from './client/describe-limits.ts';
import type { LiveData } from './client/live.ts';
import type { Html } from './html.ts';
import type { Visit } from './pages.ts';

/** The limits of a bot that are numbers, by name; amounts of money are texts in the spec. */
function limitsOf({ document }: BotDetail): BotLimits {
  const { spec } = document as { readonly spec?: { readonly risk?: object } };
  const limits = Object.entries(spec?.risk ?? {}).flatMap(([name, value]) => {
    const isLimit = typeof value === 'number' || typeof value === 'string';
    return isLimit && Number.isFinite(Number(value)) ? [[name, Number(value)] as const] : [];
  });
  return Object.fromEntries(limits);
}

/** Names and titles of thresholds of the firm, by their names in the API. */
const THRESHOLDS = {
  max_order_value: ['threshold_order_value', 'firm: value of an order'],
  max_gross_exposure: ['threshold_gross_exposure', 'firm: share of the gross exposure'],
  max_daily_loss: ['threshold_daily_loss', 'firm: share of the daily loss'],
  max_messages_per_second: ['threshold_messages', 'firm: share of the messages per second'],
} as const satisfies Partial<
  Record<keyof ReturnType<typeof resolveShares>, readonly [string, string]>
>;

/** Limits of a bot, with its shares of the thresholds that apply to it; those of instruments are left out. */
export async function readLimits(
  { call }: Pick<Visit, 'call'>,
  bot: BotDetail,
  session: string,
): Promise<BotLimits> {
  const { thresholds } = await call<typeof listThresholds>('get', '/risk/thresholds', {
    query: {},
  });
  const active = bot.active_deployments.find(({ task_id }) => task_id === session);
  const target = active?.target === 'k8s' ? 'production' : 'paper';
  const subjects = subjectsOf(bot.document as unknown as Parameters<typeof subjectsOf>[0]);
  const shares = resolveShares(subjects, thresholds, ({ sessions }) => sessions[target]);
  const named = Object.entries(THRESHOLDS).flatMap(([name, [key]]) => {
    const share = shares[name as keyof typeof THRESHOLDS];
    return share === undefined ? [] : [[key, share.value] as const];
  });
  return { ...limitsOf(bot), ...Object.fromEntries(named) };
}

/** Limits of a bot with how much of each the session uses, which `client/live.ts` updates. */
export function limitsSection({
  state,
  closes,
  limits,
}: Pick<LiveData, 'state' | 'closes' | 'limits'>): Html {
  if (limits === null) {
    return html`<section>
      <h2 id="limits">Limits</h2>
      <p class="message failure">The limits cannot be read. Load the page again.</p>
    </section>`;
  }
  const uses = describeLimits(state, closes, limits);
  const hidden = Object.keys(limits).filter((name) => !uses.some((use) => use.name === name));
  return html`<section>
    <h2 id="limits">Limits</h2>
    ${
      uses.length === 0
        ? html`<p class="note">This bot has no limit that its state shows.</p>`
        : html`<ul class="limits" aria-labelledby="limits">
            ${uses.map(limitRow)}
          </ul>`
    }
    ${
      hidden.length > 0 &&
      html`<p class="note">Also checked for each order: ${hidden.map(titleOf).join(', ')}.</p>`
    }
  </section>`;
}

/** Limits whose use is bad; the use of others is normal. */
const LOSSES: ReadonlySet<string> = new Set([
  'max_daily_loss_pct',
  'max_drawdown_pct',
  'threshold_daily_loss',
]);

function limitRow({ name, used, limit }: LimitUse): Html {
  const format = (value: number): string =>
    name.endsWith('_pct') ? formatPercent(value) : formatQuantity(value);
  const title = titleOf(name);
  return html`<li data-limit="${name}" class="${LOSSES.has(name) ? 'loss-limit' : ''}">
    <span>${title}</span>
    <span class="use"
      ><b data-used>${format(used)}</b> of ${format(limit)}
      <span class="share" data-share
        >${limit > 0 ? `${formatNumber(Math.round((100 * used) / limit))} %` : NO_VALUE}</span
      ></span
    >
    <meter
      min="0"
      max="${limit}"
      low="${0.75 * limit}"
      high="${0.9 * limit}"
      optimum="0"
      value="${used}"
      aria-label="${title}"
    ></meter>
  </li>`;
}

function titleOf(name: string): string {
  const ofFirm = Object.values(THRESHOLDS).find(([key]) => key === name)?.[1];
  const title = ofFirm ?? RISK_LIMITS[name as LimitName]?.title ?? name.replaceAll('_', ' ');
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}
