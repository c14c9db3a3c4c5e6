import type { Services } from '../../services.ts';
import type { Pages } from '../pages.ts';
import { addAttestPage } from './attest-page.ts';
import { addDeficienciesPage } from './deficiencies-page.ts';
import { addFirmPage } from './firm-page.ts';
import { addGapsPage } from './gaps-page.ts';
import { addAssessmentOverview } from './overview-page.ts';
import { addSectionPages } from './section-page.ts';

/** Registers the pages of the yearly self-assessment under RTS 6. */
export function addAssessments(pages: Pages, services: Services): void {
  addFirmPage(pages);
  addAssessmentOverview(pages);
  // Before the pages of sections, whose path would match, too.
  addGapsPage(pages);
  addDeficienciesPage(pages);
  addAttestPage(pages, services);
  addSectionPages(pages);
}
