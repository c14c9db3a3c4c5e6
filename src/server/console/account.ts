import { html } from 'hono/html';
import { z } from 'zod';
import type {
  deletePasskey,
  endSession,
  endSessions,
  getAccount,
  listPasskeys,
  listSessions,
  Passkey,
  renamePasskey,
  Session,
} from '../../api/account.ts';
import { PasskeyAssertion } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import { addPasskey, addPasskeyOptions } from '../../identity/passkeys.ts';
import { siteOf } from '../../identity/passkey-proof.ts';
import type { StepUpRequest, StepUpSubject } from '../../identity/step-up.ts';
import type { Services } from '../services.ts';
import { setSessionSecret } from '../session-cookie.ts';
import { PASSKEYS, WEBAUTHN } from './assets.ts';
import type { Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { ALERT, badge, facts, field, table, time } from './parts.ts';
import type { Pages, Visit } from './pages.ts';
import { SIGN_IN_PATH } from './sign-in.ts';
import { factorOf, siteOfPage, stepUp, stepUpFields } from './step-up.ts';

const PATH = '/console/account';

/** The page warns when fewer recovery codes than this are left. */
const FEW_CODES = 3;

/** Registers the account page: login sessions, passkeys and recovery codes of the administrator. */
export function addAccountPages(pages: Pages, services: Services): void {
  const { identity, origins } = services;

  pages.get(PATH, showAccount);

  pages.post(`${PATH}/sessions/:session_id/end`, async ({ c, call, session, param }) => {
    const session_id = param('session_id');
    const params = { session_id };
    await call<typeof endSession>('delete', '/identity/sessions/{session_id}', { params });
    if (session_id !== session.caller.session_id) {
      return { goTo: PATH, message: 'The session has ended.' };
    }
    setSessionSecret(c, services, undefined);
    return { goTo: SIGN_IN_PATH };
  });

  pages.post(`${PATH}/sessions/end-all`, async ({ c, call }) => {
    await call<typeof endSessions>('delete', '/identity/sessions', {});
    setSessionSecret(c, services, undefined);
    return { goTo: SIGN_IN_PATH };
  });

  pages.json(`${PATH}/passkeys/options`, async (visit, body) => {
    const { c, session } = visit;
    const factor = Factor.safeParse(body);
    if (!factor.success)
      throw new ServiceError('invalid_request', 'the body must contain either a code or a passkey');
    const site = siteOfPage(c, origins);
    const token = await stepUp(visit, services, addSubject(visit), factor.data as StepUpFactor);
    return addPasskeyOptions(identity, session.caller, site, token);
  });

  pages.post(
    `${PATH}/passkeys`,
    async ({ c, session }, form) => {
      const site = siteOfPage(c, origins);
      const made = { name: form.get('name'), response: parseRegistration(form.get('response')) };
      const { name } = await addPasskey(identity, session.caller, made, site, origins);
      return { goTo: PATH, message: `You can now sign in with the passkey ${name}.` };
    },
    showAccount,
  );

  pages.get(`${PATH}/passkeys/:passkey_id`, showPasskey);

  pages.post(
    `${PATH}/passkeys/:passkey_id/rename`,
    async ({ call, param }, form) => {
      const params = { passkey_id: param('passkey_id') };
      const body = { name: form.get('name') };
      const request = { params, body };
      await call<typeof renamePasskey>('patch', '/identity/passkeys/{passkey_id}', request);
      return { goTo: PATH, message: `The passkey is now called ${body.name}.` };
    },
    showPasskey,
  );

  pages.post(
    `${PATH}/passkeys/:passkey_id/delete`,
    async (visit, form) => {
      const params = { passkey_id: visit.param('passkey_id') };
      const token = await stepUp(visit, services, deleteSubject(params), factorOf(form));
      const { name } = await visit.call<typeof deletePasskey>(
        'delete',
        '/identity/passkeys/{passkey_id}',
        { params, headers: { 'service-step-up': token } },
      );
      return { goTo: PATH, message: `The passkey ${name} is deleted.` };
    },
    showPasskey,
  );
}

type StepUpFactor = Pick<StepUpRequest, 'code' | 'passkey'>;

const Factor = z.union([
  z.strictObject({ code: z.string().max(100) }),
  z.strictObject({ passkey: PasskeyAssertion }),
]);

function addSubject({ session }: Visit): StepUpSubject {
  return {
    action: 'identity.passkey.add',
    target: `administrator:${session.caller.administrator_id}`,
  };
}

function deleteSubject({ passkey_id }: { readonly passkey_id: string }): StepUpSubject {
  return { action: 'identity.passkey.delete', target: `passkey:${passkey_id}` };
}

const base64url = z
  .string()
  .max(20_000)
  .regex(/^[\w-]*$/);

/** The used fields of `RegistrationResponseJSON` of WebAuthn. */
const Registration = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    attestationObject: base64url,
    transports: z.array(z.string().max(30)).max(10).optional(),
  }),
  clientExtensionResults: z.record(z.string(), z.unknown()),
});

function parseRegistration(text: string): Parameters<typeof addPasskey>[2]['response'] {
  try {
    return Registration.parse(JSON.parse(text)) as ReturnType<typeof parseRegistration>;
  } catch (error) {
    throw new ServiceError('invalid_request', 'the browser did not send a valid passkey', {
      remedy: 'Add the passkey in a browser with JavaScript enabled.',
      cause: error,
    });
  }
}

async function showAccount(visit: Visit): Promise<Content> {
  const { call, session } = visit;
  const { administrator_id } = session.caller;
  const [account, sessions, passkeys] = await Promise.all([
    call<typeof getAccount>('get', '/identity/account', {}),
    call<typeof listSessions>('get', '/identity/sessions', { query: { administrator_id } }),
    call<typeof listPasskeys>('get', '/identity/passkeys', {}),
  ]);
  return {
    title: 'Account',
    scripts: [WEBAUTHN, PASSKEYS],
    body: html`${facts(
        ['Name', account.name],
        ['Created', time(account.created_at)],
        ['Recovery codes left', recoveryCodes(account.recovery_codes)],
      )}
      <section aria-labelledby="passkeys">
        <h2 id="passkeys">Passkeys</h2>
        <p class="note">
          A passkey replaces the password and the code when you sign in, and the code when you
          confirm an action. Each passkey works on one site only.
        </p>
        ${passkeys.items.length > 0 ? passkeyTable(passkeys.items) : html`<p>You have no passkeys.</p>`}
        ${addForm(visit)}
      </section>
      <section aria-labelledby="sessions">
        <h2 id="sessions">Sessions</h2>
        <p class="note">
          Browsers in which you are signed in. To list tokens, run
          <code>service-local identity tokens list</code>.
        </p>
        ${sessionTable(sessions.items, visit)}
        <form method="post" action="${PATH}/sessions/end-all">
          ${csrfField(session)}<button class="danger">Sign out everywhere</button>
        </form>
      </section>`,
  };
}

function recoveryCodes(left: number): Html | string {
  if (left >= FEW_CODES) return String(left);
  return html`<strong class="warning">${left}</strong>: to get new ones, run
    <code>service-local identity administrators reset NAME</code> on the server's machine`;
}

function passkeyTable(passkeys: readonly Passkey[]): Html {
  return table<Passkey>(
    'Your passkeys',
    [
      {
        title: 'Name',
        isHeader: true,
        cell: ({ passkey_id, name }) => html`<a href="${PATH}/passkeys/${passkey_id}">${name}</a>`,
      },
      { title: 'Site', cell: ({ site }) => site },
      { title: 'Added', cell: ({ created_at }) => time(created_at) },
      {
        title: 'Last used',
        cell: ({ last_used_at }) => (last_used_at === null ? 'never' : time(last_used_at)),
      },
    ],
    passkeys,
  );
}

function addForm(visit: Visit): Html {
  const { c, session } = visit;
  if (siteOf(c.req.url) === undefined) {
    return html`<p class="note">
      To add a passkey, open the console under a host name, such as <code>localhost</code>, instead
      of an IP address.
    </p>`;
  }
  return html`<details>
    <summary>Add a passkey</summary>
    <form method="post" action="${PATH}/passkeys" data-passkey="add" hidden>
      ${csrfField(session)}
      ${field('Name of the new passkey', 'name', { required: true, maxlength: 200, autocomplete: 'off' }, 'The device that holds it, such as “Laptop”.')}
      ${stepUpFields(addSubject(visit))}
      <input type="hidden" name="response" />
      ${ALERT}<button class="main">Add a passkey</button>
    </form>
    <noscript
      ><p>Adding a passkey requires JavaScript, which is disabled in this browser.</p></noscript
    >
  </details>`;
}

function sessionTable(sessions: readonly Session[], { session: own }: Visit): Html {
  return table<Session>(
    'Your sessions',
    [
      {
        title: 'Browser',
        isHeader: true,
        cell: ({ user_agent, current }) =>
          html`${browserName(user_agent)}${current && html` ${badge('good', 'this session')}`}`,
      },
      { title: 'Address', cell: ({ address }) => address ?? 'unknown' },
      { title: 'Signed in with', cell: ({ signed_in_with }) => signed_in_with },
      { title: 'Signed in', cell: ({ created_at }) => time(created_at) },
      { title: 'Last used', cell: ({ seen_at }) => time(seen_at) },
      {
        title: html`<span class="unseen">End</span>`,
        cell: ({ session_id, user_agent, current, created_at }) =>
          html`<form method="post" action="${PATH}/sessions/${session_id}/end">
            ${csrfField(own)}<button
              aria-label="${current ? 'End this session' : `End the session in ${browserName(user_agent)} of ${created_at}`}"
            >
              End
            </button>
          </form>`,
      },
    ],
    sessions,
  );
}

/** Names a browser such as `Firefox on Linux`; an unrecognized user agent is returned whole. */
function browserName(userAgent: string): string {
  const [, browser] =
    /(Firefox|Edg|OPR|Chrome|Safari)\//.exec(userAgent.replace(/^.*(Edg|OPR)\//, '$1/')) ?? [];
  const [, system] = /(Windows|Android|iPhone|iPad|Mac OS|Linux)/.exec(userAgent) ?? [];
  if (browser === undefined) return userAgent === '' ? 'Unknown' : userAgent;
  return system === undefined ? browser : `${browser} on ${system}`;
}

async function showPasskey({ call, param, session }: Visit): Promise<Content> {
  const passkey_id = param('passkey_id');
  const { items } = await call<typeof listPasskeys>('get', '/identity/passkeys', {});
  const passkey = items.find((one) => one.passkey_id === passkey_id);
  if (passkey === undefined) {
    throw new ServiceError('not_found', 'your account has no passkey with this id');
  }
  const { name, site, created_at, last_used_at } = passkey;
  return {
    title: `Passkey ${name}`,
    scripts: [WEBAUTHN, PASSKEYS],
    body: html`<p><a href="${PATH}">Back to your account</a></p>
      ${facts(['Site', site], ['Added', time(created_at)], ['Last used', last_used_at === null ? 'never' : time(last_used_at)])}
      <section aria-labelledby="rename">
        <h2 id="rename">Rename</h2>
        <form method="post" action="${PATH}/passkeys/${passkey_id}/rename">
          ${csrfField(session)}
          ${field('New name', 'name', { required: true, maxlength: 200, value: name, autocomplete: 'off' })}
          <button>Rename</button>
        </form>
      </section>
      <section aria-labelledby="delete">
        <h2 id="delete">Delete</h2>
        <p>
          You can no longer sign in with it. The device keeps its copy until you delete it there.
        </p>
        <form method="post" action="${PATH}/passkeys/${passkey_id}/delete">
          ${csrfField(session)} ${stepUpFields(deleteSubject({ passkey_id }))}
          <button class="danger">Delete this passkey</button>
        </form>
      </section>`,
  };
}
