import { html, type Html } from '../../base/html.ts';
import { describeLuck } from '../ledger/describe-luck.ts';
import type { Summary } from '../summary.ts';

/** How far the result may be luck. */
export function luckSection(summary: Summary): Html[] {
  return describeLuck(summary).map((sentence) => html`<p class="judgement">${sentence}</p> `);
}
