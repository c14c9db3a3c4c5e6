import { formatInstant } from '../api/http.ts';
import * as api from '../api/overview.ts';
import { listAlerts, type RecordedAlert } from '../events/list-alerts.ts';
import { readNames } from '../fleet/registry/bot-slugs.ts';
import { readOverview } from '../fleet/tasks/overview.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addOverview(app: App, { identity }: Services): void {
  const { storage, clock } = identity;
  const { read } = storage;

  app.openapi(api.getOverview, async (c) => c.json(await readOverview(read, clock()), 200));
  app.openapi(api.listAlerts, async (c) => {
    const page = await listAlerts(read, c.req.valid('query'));
    const names = await readNames(
      read,
      page.items.map(({ bot_id }) => bot_id),
    );
    const serialize = ({ recorded_at, ...alert }: RecordedAlert): api.RaisedAlert => {
      const { slug, name } = names.get(alert.bot_id) ?? { slug: alert.bot_id, name: alert.bot_id };
      return { ...alert, bot_slug: slug, bot_name: name, recorded_at: formatInstant(recorded_at) };
    };
    return c.json(serializePage(page, serialize), 200);
  });
}
