// Package page tests the admin listener's page in a real Chromium, on a holdfast
// with 3,407 hosts and three Envoys. It is a module of its own, so that what drives
// the browser is no dependency of holdfast's.
//
// `make page-test` runs it. Pictures of each page, light, dark and narrow, are in
// HOLDFAST_PAGE_SHOTS afterwards.
package page
