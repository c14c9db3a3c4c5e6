import { html, type Html } from '../../base/html.ts';
import { describeLuck } from '../ledger/describe-luck.ts';
import type { UnhashedSummary } from '../summary.ts';

/** Sentences on how likely luck explains the result. */
export function luckSection(summary: UnhashedSummary): Html[] {
  return describeLuck(summary).map((sentence) => html`<p class="judgement">${sentence}</p> `);
}
