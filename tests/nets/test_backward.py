"""The way back by hand gives what autograd gives."""

import pytest
import torch

from marlctl.nets import MLP, Trace, affine, product


@pytest.mark.parametrize("activation", ["relu", "tanh", "elu"])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("sizes", [(5, 32, 1), (7, 32, 32, 4), (3, 32, 24, 32, 20)])
def test_the_way_back_is_autograds(activation, layer_norm, sizes):
    torch.manual_seed(0)
    shape = MLP(sizes, activation, layer_norm)
    flat = torch.randn(3, shape.size).div(4).requires_grad_()
    x = torch.randn(3, 40, sizes[0])
    first = affine(x, *shape.layers(flat)[0])
    first.retain_grad()
    out = Trace(shape, shape.layers(flat), first).out
    gradient = torch.randn_like(out)
    out.backward(gradient)

    with torch.no_grad():
        trace = Trace(shape, shape.layers(flat), affine(x, *shape.layers(flat)[0]))
        torch.testing.assert_close(trace.out, shape(flat, x))
        gradients = trace.back(gradient)
        torch.testing.assert_close(gradients[0], first.grad, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(trace.parameters(x, gradients), flat.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("inner", [1, 6])
@pytest.mark.parametrize("columns", [1, 5, 40])
def test_products_are_the_same_in_every_shape_they_take(inner, columns):
    x, weight, bias = torch.randn(2, 9, inner), torch.randn(2, inner, columns), torch.randn(2, 1, columns)
    torch.testing.assert_close(product(x, weight), torch.einsum("urk,ukc->urc", x, weight))
    torch.testing.assert_close(affine(x, weight, bias), torch.einsum("urk,ukc->urc", x, weight) + bias)
