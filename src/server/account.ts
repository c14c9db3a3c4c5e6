import * as api from '../api/account.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { getAccount } from '../identity/administrators.ts';
import {
  deletePasskey,
  listPasskeys,
  renamePasskey,
  type PasskeyState,
} from '../identity/passkeys.ts';
import {
  endSession,
  endSessions,
  listSessions,
  type SessionState,
} from '../identity/login-sessions.ts';
import type { Caller } from '../identity/tokens.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addAccount(app: App, { identity }: Services): void {
  const { read } = identity.storage;

  app.openapi(api.getAccount, async (c) => {
    const account = await getAccount(read, c.get('caller')!.administrator_id);
    return c.json({ ...account, created_at: formatInstant(account.created_at) }, 200);
  });

  app.openapi(api.listSessions, async (c) => {
    const caller = c.get('caller')!;
    const page = await listSessions(identity, caller, c.req.valid('query'));
    return c.json(
      serializePage(page, (session) => serializeSession(session, caller)),
      200,
    );
  });
  app.openapi(api.endSession, async (c) => {
    const caller = c.get('caller')!;
    const ended = await endSession(identity, caller, c.req.valid('param').session_id);
    return c.json(serializeSession(ended, caller), 200);
  });
  app.openapi(api.endSessions, async (c) =>
    c.json({ ended: await endSessions(identity, c.get('caller')!) }, 200),
  );

  app.openapi(api.listPasskeys, async (c) => {
    const page = await listPasskeys(read, c.get('caller')!, c.req.valid('query'));
    return c.json(serializePage(page, serializePasskey), 200);
  });
  app.openapi(api.renamePasskey, async (c) => {
    const { passkey_id } = c.req.valid('param');
    const { name } = c.req.valid('json');
    return c.json(
      serializePasskey(await renamePasskey(identity, c.get('caller')!, passkey_id, name)),
      200,
    );
  });
  app.openapi(api.deletePasskey, async (c) => {
    const { passkey_id } = c.req.valid('param');
    const stepUp = c.req.valid('header')['service-step-up'];
    const deleted = await deletePasskey(identity, c.get('caller')!, passkey_id, stepUp);
    return c.json(serializePasskey(deleted), 200);
  });
}

function serializeSession(session: SessionState, caller: Caller): api.Session {
  return {
    ...session,
    created_at: formatInstant(session.created_at),
    seen_at: formatInstant(session.seen_at),
    expires_at: formatInstant(session.expires_at),
    current: 'session_id' in caller && caller.session_id === session.session_id,
  };
}

function serializePasskey(passkey: PasskeyState): api.Passkey {
  return {
    ...passkey,
    created_at: formatInstant(passkey.created_at),
    last_used_at: formatInstantOrNull(passkey.last_used_at),
  };
}
