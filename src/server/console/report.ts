import type { Context } from 'hono';
import type { AppEnv } from '../services.ts';

/**
 * A report as it was made: a page with scripts of its own. Whatever is in it, it is sandboxed into an
 * origin of its own, however it is opened, without the session, without any request; and only those
 * scripts run that the page itself names by their hashes in the policy with which it was made.
 */
export async function reportOf(c: Context<AppEnv>, read: () => Promise<string>): Promise<Response> {
  const source = await read();
  const isolated = "sandbox allow-scripts; frame-ancestors 'self'";
  c.header('Content-Security-Policy', `${ownPolicy(source)}; ${isolated}`);
  c.header('X-Frame-Options', 'SAMEORIGIN');
  return c.html(source);
}

const META = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/;
/** As reports have it: nothing but what is written in them. */
const POLICY =
  /^default-src 'none'; script-src( 'sha256-[\w+/=]+')+; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'$/;

/** Nothing at all where the page has another one than reports have. */
function ownPolicy(source: string): string {
  const [, escaped = ''] = META.exec(source.slice(0, 4000)) ?? [];
  const policy = escaped.replaceAll('&#39;', "'");
  return POLICY.test(policy) ? policy : "default-src 'none'";
}
