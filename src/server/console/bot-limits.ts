import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import { formatNumber, formatPercent, formatQuantity, NO_VALUE } from '../../base/format.ts';
import { RISK_LIMITS, type LimitName } from '../../base/risk-limits.ts';
import { describeLimits, type BotLimits, type LimitUse } from './client/describe-limits.ts';
import type { LiveData } from './client/live.ts';
import type { Html } from './html.ts';

/** The limits of a bot that are numbers, by name; amounts of money are texts in the spec. */
export function limitsOf({ document }: BotDetail): BotLimits {
  const { spec } = document as { readonly spec?: { readonly risk?: object } };
  const limits = Object.entries(spec?.risk ?? {}).flatMap(([name, value]) => {
    const isLimit = typeof value === 'number' || typeof value === 'string';
    return isLimit && Number.isFinite(Number(value)) ? [[name, Number(value)] as const] : [];
  });
  return Object.fromEntries(limits);
}

/** Limits of a bot with how much of each the session uses, which `client/live.ts` updates. */
export function limitsSection({
  state,
  closes,
  limits,
}: Pick<LiveData, 'state' | 'closes' | 'limits'>): Html {
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
const LOSSES: ReadonlySet<string> = new Set(['max_daily_loss_pct', 'max_drawdown_pct']);

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
  const { title } = RISK_LIMITS[name as LimitName] ?? { title: name.replaceAll('_', ' ') };
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}
