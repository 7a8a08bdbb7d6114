"""An unlearning method in the signature of public competitions, as it would be submitted there.

A few steps of gradient ascent on the forget set, then fine-tuning on the retain set to mend what they broke.
"""

import torch
from torch import nn

DEVICE = "cpu"


def unlearning(net, retain_loader, forget_loader, val_loader):
    """Changes the net in place and returns it."""
    criterion = nn.CrossEntropyLoss()
    net.to(DEVICE)
    net.train()

    ascent = torch.optim.SGD(net.parameters(), lr=0.001)
    for inputs, targets in forget_loader:
        ascent.zero_grad()
        loss = -criterion(net(inputs.to(DEVICE)), targets.to(DEVICE))
        loss.backward()
        ascent.step()

    epochs = 3
    descent = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(descent, T_max=epochs)
    for _ in range(epochs):
        for inputs, targets in retain_loader:
            descent.zero_grad()
            loss = criterion(net(inputs.to(DEVICE)), targets.to(DEVICE))
            loss.backward()
            descent.step()
        scheduler.step()

    net.eval()
    return net
