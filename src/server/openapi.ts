import { getOpenApi } from '../api/health.ts';
import { SECURITY_SCHEMES, TAGS } from '../api/http.ts';
import { packageVersion } from '../base/package-version.ts';
import type { App, Services } from './services.ts';

export function addOpenApi(app: App, { origins: [origin] }: Services): void {
  let document: { openapi: string } | undefined;
  app.openapi(getOpenApi, (c) => c.json((document ??= openApiDocument(app, origin)), 200));
}

function openApiDocument(app: App, origin: string): { openapi: string } {
  for (const [name, scheme] of Object.entries(SECURITY_SCHEMES)) {
    app.openAPIRegistry.registerComponent('securitySchemes', name, scheme);
  }
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'service-local',
      version: packageVersion(),
      description:
        'Manages trading bots, and issues, renews and revokes license leases that are verified offline.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: origin }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
  });
}
