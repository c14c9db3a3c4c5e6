import { isIP } from 'node:net';
import type { SettingsOf } from './channels-file.ts';
import type { OutgoingMessage } from './notices.ts';
import { resolvePublic } from './public-address.ts';
import { SendFailure } from './send-failure.ts';

/** Sends the notice as a plain text e-mail. Each attempt has the same `Message-ID`. */
export async function sendEmail(
  settings: SettingsOf<'email'>,
  password: string | undefined,
  { delivery_id, text, timeoutMs, signal }: OutgoingMessage,
): Promise<void> {
  const { host, port, security, user, from, to, allow_private_address } = settings;
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    // The address that was checked, so that another lookup cannot return a private one.
    host: allow_private_address ? host : await resolvePublic(host),
    port,
    secure: security === 'tls',
    requireTLS: security === 'starttls',
    ignoreTLS: security === 'none',
    ...(password !== undefined && user !== undefined && { auth: { user, pass: password } }),
    ...(isIP(host) === 0 && { tls: { servername: host } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // An aborted attempt must not send after it is recorded as failed, since it is repeated.
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    await transport.sendMail({
      from,
      to,
      subject: text.subject,
      text: text.body,
      messageId: `<${delivery_id}@service-local>`,
      signal,
    });
  } catch (error) {
    throw describeRefusal(error);
  } finally {
    transport.close();
  }
}

/** Answers of mail servers can repeat what was sent, so only their codes are reported. */
function describeRefusal(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown };
  if (code === 'ETLS')
    return new SendFailure(
      'the mail server does not offer STARTTLS; check port and security of the channel',
    );
  const status = typeof responseCode === 'number' ? ` (${responseCode})` : '';
  if (code === 'EAUTH') return new SendFailure(`the mail server rejected the login${status}`);
  if (code === 'EENVELOPE') {
    return new SendFailure(`the mail server rejected the sender or the recipients${status}`);
  }
  if (status !== '') return new SendFailure(`the mail server rejected the message${status}`);
  return error;
}
