import type { Passkey, Session } from '../api/account.ts';
import { NO_VALUE } from '../base/format.ts';
import type { Columns } from './show-items.ts';

export const SESSION_COLUMNS: Columns<Session> = {
  session: ({ session_id }) => session_id,
  administrator: ({ administrator }) => administrator,
  by: ({ signed_in_with }) => signed_in_with,
  from: ({ address }) => address ?? NO_VALUE,
  'last used': ({ seen_at }) => seen_at,
  expires: ({ expires_at }) => expires_at,
  browser: ({ user_agent }) => user_agent,
};

export const PASSKEY_COLUMNS: Columns<Passkey> = {
  passkey: ({ passkey_id }) => passkey_id,
  name: ({ name }) => name,
  site: ({ site }) => site,
  added: ({ created_at }) => created_at,
  'last used': ({ last_used_at }) => last_used_at ?? NO_VALUE,
};
