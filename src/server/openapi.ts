import { SECURITY_SCHEMES } from '../api/http.ts';
import { packageVersion } from '../version.ts';
import type { App, Services } from './services.ts';

/** OpenAPI 3.1 of all routes that have been added, at `/openapi.json`. */
export function addOpenApi(app: App, { origins: [origin] }: Services): void {
  let text: string | undefined;
  app.get('/openapi.json', (c) => {
    text ??= JSON.stringify(openApiDocument(app, origin));
    return c.body(text, 200, { 'Content-Type': 'application/json' });
  });
}

function openApiDocument(app: App, origin: string): unknown {
  for (const [name, scheme] of Object.entries(SECURITY_SCHEMES)) {
    app.openAPIRegistry.registerComponent('securitySchemes', name, scheme);
  }
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'service-local',
      version: packageVersion(),
      description: 'Issues, renews and revokes licence leases that are verified offline.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: origin }],
    tags: TAGS,
  });
}

const TAGS = [
  { name: 'Server', description: 'Whether the server works, and how well.' },
  {
    name: 'Leases',
    description: 'Issuing, renewing and revoking them; the keys that verify them.',
  },
  { name: 'Devices', description: 'The machines that renew leases by themselves.' },
  { name: 'Registry', description: 'Customers, plans, contracts and deployments.' },
  { name: 'Administrators', description: 'Tokens, second factors and the audit log.' },
];
