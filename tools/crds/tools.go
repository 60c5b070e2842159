// Package crds keeps Contour's API packages among this module's requirements:
// controller-gen reads them as source, so no code here imports them otherwise.
package crds

import (
	_ "github.com/projectcontour/contour/apis/projectcontour/v1"
	_ "github.com/projectcontour/contour/apis/projectcontour/v1alpha1"
)
