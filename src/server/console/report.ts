import type { Context } from 'hono';
import type { AppEnv } from '../services.ts';

/**
 * Serves a stored report, a page with scripts of its own. Its content is not trusted: a sandbox
 * gives it an origin of its own, without the session and without network, however it is opened.
 * Only scripts run whose hashes are in the policy that the report was generated with.
 */
export async function serveReport(
  c: Context<AppEnv>,
  read: () => Promise<string>,
): Promise<Response> {
  const source = await read();
  const isolated = "sandbox allow-scripts; frame-ancestors 'self'";
  c.header('Content-Security-Policy', `${ownPolicy(source)}; ${isolated}`);
  c.header('X-Frame-Options', 'SAMEORIGIN');
  return c.html(source);
}

const META = /<meta http-equiv="Content-Security-Policy" content="([^"]*)"/;
/**
 * The policy of generated reports, which allows only inline scripts and styles with these hashes.
 */
const POLICY =
  /^default-src 'none'; script-src( 'sha256-[\w+/=]+')+; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'$/;

/**
 * Returns the policy in the report, or one that allows nothing if reports are not generated with
 * it.
 */
function ownPolicy(source: string): string {
  const [, escaped = ''] = META.exec(source.slice(0, 4000)) ?? [];
  const policy = escaped.replaceAll('&#39;', "'");
  return POLICY.test(policy) ? policy : "default-src 'none'";
}
