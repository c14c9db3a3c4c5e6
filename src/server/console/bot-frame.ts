import { html } from 'hono/html';
import type { BotDetail, getBot } from '../../api/bots.ts';
import { BOTS_PATH, botPath, botStatus } from './bot-parts.ts';
import type { Child, Html } from './html.ts';
import type { Visit } from './pages.ts';

const TABS = [
  { title: 'Now', page: '' },
  { title: 'Trades', page: 'trades' },
  { title: 'Events', page: 'events' },
  { title: 'Runs', page: 'runs' },
  { title: 'Versions', page: 'versions' },
  { title: 'Edit', page: 'edit' },
  { title: 'RTS 6', page: 'rts6' },
  { title: 'Chat', page: 'chat' },
] as const;

/** Tabs that only bots of one kind have. */
const KIND_OF_TAB: Readonly<Record<string, BotDetail['kind']>> = {
  trades: 'trading',
  rts6: 'trading',
};

/** Reads the bot that the path of the page names. */
export function readBot({ call, param }: Visit): Promise<BotDetail> {
  return call<typeof getBot>('get', '/bots/{bot_ref}', {
    params: { bot_ref: param('bot_ref') },
    headers: {},
  });
}

/** Puts the header and the tabs that all pages of a bot share above `body`. */
export function botFrame(bot: BotDetail, page: (typeof TABS)[number]['page'], body: Child): Html {
  const { slug, kind, current_version } = bot;
  return html`<div class="heading">
      <p>
        <a href="${BOTS_PATH}">Bots</a> /
        <code>${slug}</code> ${botStatus(bot.status, bot.halted?.scope)}
        <span class="note">${kind}, version ${current_version}</span>
      </p>
      <div class="actions">
        <a class="button" href="${botPath(slug, 'backtest')}">Backtest…</a>
        <a class="button" href="${botPath(slug, 'analyses')}">Search…</a>
        ${
          kind === 'trading' &&
          html`<a class="button" href="${botPath(slug, 'paper')}">Paper session…</a>`
        }
        <a class="button danger" href="${botPath(slug, 'halt')}">Halt this bot</a>
      </div>
    </div>
    <nav class="tabs" aria-label="Pages of this bot">
      <ul>
        ${TABS.filter(
          ({ page: one }) => KIND_OF_TAB[one] === undefined || KIND_OF_TAB[one] === kind,
        ).map(
          (tab) =>
            html`<li>
              <a href="${botPath(slug, tab.page)}" ${tab.page === page && html`aria-current="page"`}
                >${tab.title}</a
              >
            </li>`,
        )}
      </ul>
    </nav>
    ${body}`;
}
