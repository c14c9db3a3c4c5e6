import type { SettingsOf } from './channels-file.ts';
import type { OutgoingMessage } from './notices.ts';
import { postJson, requireSuccess } from './post-json.ts';
import { SendFailure } from './send-failure.ts';

/** Characters of a message (https://core.telegram.org/bots/api#sendmessage). */
const LONGEST_TEXT = 4096;

/** Sends the notice as text, with `sendMessage` of the Telegram Bot API. */
export async function sendTelegram(
  { api_url, chat_id, allow_private_address: allowPrivate }: SettingsOf<'telegram'>,
  token: string,
  { text, timeoutMs, signal }: OutgoingMessage,
): Promise<void> {
  const answer = await postJson({
    url: `${api_url.replace(/\/$/, '')}/bot${token}/sendMessage`,
    body: JSON.stringify({ chat_id, text: text.body.slice(0, LONGEST_TEXT) }),
    allowPrivate,
    timeoutMs,
    signal,
  });
  if (answer.status === 401 || answer.status === 404) {
    throw new SendFailure('Telegram rejected the token; compare it with the one of BotFather');
  }
  if (answer.status === 400)
    throw new SendFailure('Telegram rejected the chat; check chat_id, and add the bot to the chat');
  if (answer.status === 403)
    throw new SendFailure('the Telegram bot may not write to the chat; add it to the chat');
  requireSuccess(answer);
}
