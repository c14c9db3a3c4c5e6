import { createHmac } from 'node:crypto';
import type { SettingsOf } from './channels-file.ts';
import type { OutgoingMessage } from './notices.ts';
import { postJson, requireSuccess } from './post-json.ts';

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;

/**
 * Returns the key of a signing secret of the Standard Webhooks specification
 * (https://www.standardwebhooks.com); undefined if the secret does not have this form.
 */
export function parseWebhookSecret(secret: string): Buffer | undefined {
  const key = Buffer.from(SECRET.exec(secret)?.[1] ?? '', 'base64');
  return key.length >= 24 && key.length <= 64 ? key : undefined;
}

/** Posts the notice, signed as Standard Webhooks specifies. */
export async function sendWebhook(
  { url, allow_private_address: allowPrivate }: SettingsOf<'webhook'>,
  key: Buffer,
  { delivery_id, body, timeoutMs, signal }: OutgoingMessage,
): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac('sha256', key)
    .update(`${delivery_id}.${timestamp}.${body}`)
    .digest('base64');
  const headers = {
    'webhook-id': delivery_id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
  requireSuccess(await postJson({ url, headers, body, allowPrivate, timeoutMs, signal }));
}
